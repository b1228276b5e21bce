package storetest

// StandIn contains the SQL statements that create the stand-in for Citus in a PostgreSQL database.
const StandIn = standIn

// URL returns the URL of a database of the server.
func (s *Server) URL() string { return s.url }
