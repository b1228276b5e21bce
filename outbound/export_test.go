package outbound

import "syscall"

// Control runs the check that a Guard runs immediately before the system connects. `host` is the name that resolved
// to the IP address in ipPort.
func Control(host string, reach Reach, network, ipPort string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.checkBeforeConnecting(network, ipPort, c)
}
