package outbound

import "syscall"

// Control makes the last check before a connection, as a Guard does. The parameter ipPort is an IP address with a port, and host is the
// name that resolved to this IP address. Control returns a *RefusedError if the parameter reach does not allow the IP address.
func Control(host string, reach Reach, network, ipPort string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.checkBeforeConnecting(network, ipPort, c)
}
