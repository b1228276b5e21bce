package outbound

import "syscall"

// Control calls the check that runs before the system connects to a host.
func Control(host string, reach Reach, network, address string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.control(network, address, c)
}
