package storetest

// StandIn has SQL statements after which a PostgreSQL database without Citus imitates a database with Citus.
const StandIn = standIn

// URL returns the URL of a database of the server.
func (s *Server) URL() string { return s.url }
