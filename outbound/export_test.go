package outbound

import "syscall"

// Control runs the check that a guard makes immediately before the system connects to address. host is the name that resolved to it.
func Control(host string, reach Reach, network, address string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.control(network, address, c)
}
