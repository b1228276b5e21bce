package vendor

// SkipRunPauses makes the source ask about runs without a pause between two requests.
func (s *Source) SkipRunPauses() { s.runPause = 0 }
