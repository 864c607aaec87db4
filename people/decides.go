package people

// Decides returns the roles in which a person decides on actions, wherever no
// limit stands in the way. An auditor has none.
func (p Person) Decides() []string { return deciding(p.Roles) }
