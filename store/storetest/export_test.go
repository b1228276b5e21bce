package storetest

// StandIn is the stand-in for the extension Citus.
const StandIn = standIn

// URL returns the URL of a database of the server.
func (s *Server) URL() string { return s.url }
