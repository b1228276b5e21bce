package storetest

// StandIn has SQL statements that make a PostgreSQL database imitate one with the extension Citus: see standIn.
const StandIn = standIn

// URL returns the URL of a database of the server.
func (s *Server) URL() string { return s.url }
