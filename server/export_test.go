package server

// SetMaxPage sets the maximum size in bytes of a page of a list. A page that reaches n ends before its limit of rows.
func (s *Server) SetMaxPage(n int64) { s.maxPage = n }
