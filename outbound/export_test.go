package outbound

import "syscall"

// Control runs the check that a Guard makes immediately before the system connects to address, which is an "ip:port". host is the host name
// that resolved to this IP address. Control returns a *RefusedError if reach does not allow the IP address.
func Control(host string, reach Reach, network, address string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.control(network, address, c)
}
