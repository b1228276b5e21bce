package outbound

import "syscall"

// Control runs the check that a Guard runs immediately before the system connects to an IP address. ipPort is the "ip:port", and host is
// the host name that resolved to this IP address. Control returns a *RefusedError if reach does not allow the IP address.
func Control(host string, reach Reach, network, ipPort string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.checkBeforeConnecting(network, ipPort, c)
}
