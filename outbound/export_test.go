package outbound

import "syscall"

// Control checks an IP address in the same way as a Guard does immediately before the system connects. The parameter address is the
// "ip:port", and host is the host name that resolved to this IP address. Control returns a *RefusedError if reach does not allow the IP
// address.
func Control(host string, reach Reach, network, address string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.control(network, address, c)
}
