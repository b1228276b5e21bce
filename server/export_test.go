package server

// SetMaxPageBytes sets the maximum size of a page of a list to n bytes. A page that would be larger has fewer rows than requested.
func (s *Server) SetMaxPageBytes(n int64) { s.maxPage = n }
