package outbound

import "syscall"

// Control calls the function that a Guard calls immediately before it connects. The parameter "host" is the
// name that resolved to the IP address in ipPort.
func Control(host string, reach Reach, network, ipPort string, c syscall.RawConn) error {
	return target{host: host, reach: reach}.checkBeforeConnecting(network, ipPort, c)
}
