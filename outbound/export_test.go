package outbound

import "syscall"

// Control does the check that a Guard does immediately before the system connects to an IP address. The parameter address is the "ip:port".
// The parameter host is the host name that resolved to this IP address. Control returns a *RefusedError if the parameter reach does not
// allow the IP address.
func Control(host string, reach Reach, network, address string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.control(network, address, c)
}
