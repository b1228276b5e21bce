package outbound

import "syscall"

// Control makes the same check that a Guard makes immediately before it connects. The parameter "ipPort" is an IP address with a port. The
// parameter "host" is the name that resolved to this IP address. The parameter "reach" says which IP addresses are allowed. Control returns a
// *RefusedError if the IP address is not allowed.
func Control(host string, reach Reach, network, ipPort string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.checkBeforeConnecting(network, ipPort, c)
}
