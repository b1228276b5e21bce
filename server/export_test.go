package server

// SetMaxPage sets the size in bytes at which a page of a list ends early.
func (s *Server) SetMaxPage(n int64) { s.maxPage = n }
