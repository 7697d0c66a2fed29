// Package house holds the tests of the rules that the code itself keeps: who may
// import whom, what a workflow may use, what has a doc comment, and what no
// committed file may name. It has no other code. Each checker is tested with a
// planted breach that it must find.
package house
