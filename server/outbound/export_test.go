package outbound

import "syscall"

// Control is the check that the system's dial goes through.
func (g *Guard) Control(network, address string, c syscall.RawConn) error {
	return g.control(network, address, c)
}
