// Package web holds everything people see: the words, the view models and the
// pages drawn from them. It knows no domain package and no database: handlers
// turn domain values into the plain structs here and render the components.
//
// Three types keep a page honest. [Text] is outside text, which only the
// display-safe component can show. [Own] is what the signed-in person typed,
// given back when a form is refused. [Msg] is prose, which only this package
// and its locale files can write.
package web
