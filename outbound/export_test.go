package outbound

import "syscall"

// Control is the check that the system's dial to a host goes through.
func Control(host string, reach Reach, network, address string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.control(network, address, c)
}
