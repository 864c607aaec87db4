// Package people knows who may do what: persons with their roles and limits,
// the programs (clients) and their API keys, sessions in the browser, and the
// rules that join them. May answers every question of authority, with the reason.
//
// Administrative changes are commands: each carries an op, and is written as one
// event together with the row it changes.
package people
