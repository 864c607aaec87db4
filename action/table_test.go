package action

import (
	"errors"
	"strings"
	"testing"
)

// The whole table: what each command does at each station of a life. A station
// is a state; where it matters what was done before, a state has several.
//
//	draft, applied …  the event leads to that state
//	=                 written down, the state stays
//	-                 nothing is written
//	!code             refused
//
// The stations: claimed is executing with nothing sent; sent with a request on
// its way; accepted has proven acceptance; verifying has proven completion and
// waits for a reading back; between is executing with the first of two steps
// done, and in part result_unknown with the second refused after that; unknown is result_unknown after an answer by key
// that nothing was executed; settling is the same after people found that it
// did not happen, before the fence; mismatch is result_unknown after a proven
// completion that could not be read back.
const lifeTable = `
                                              | none       | draft        | proposed        | confirmed         | claimed          | sent             | accepted         | verifying        | between          | applied          | failed           | conflict         | unknown           | settling          | mismatch          | in part           | rejected         | cancelled      | expired
Propose                                       | proposed   | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !wrong-state
Propose draft                                 | draft      | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !wrong-state
Propose nobody asked                          | confirmed  | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !wrong-state
Submit                                        | !not-found | proposed     | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Submit nobody asked                           | !not-found | confirmed    | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Revise                                        | !not-found | =            | =               | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Vote approve                                  | !not-found | !wrong-state | confirmed       | !already-decided  | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided  | !already-decided  | !already-decided  | !already-decided  | !already-decided | !wrong-state   | !expired
Vote approve, more needed                     | !not-found | !wrong-state | =               | !already-decided  | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided  | !already-decided  | !already-decided  | !already-decided  | !already-decided | !wrong-state   | !expired
Vote reject                                   | !not-found | !wrong-state | rejected        | !already-decided  | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided  | !already-decided  | !already-decided  | !already-decided  | !already-decided | !wrong-state   | !expired
Vote on another hash                          | !not-found | !wrong-state | !stale-revision | !already-decided  | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided | !already-decided  | !already-decided  | !already-decided  | !already-decided  | !already-decided | !wrong-state   | !expired
Count                                         | !not-found | -            | confirmed       | -                 | -                | -                | -                | -                | -                | -                | -                | -                | -                 | -                 | -                 | -                 | -                | -              | -
Cancel                                        | !not-found | cancelled    | cancelled       | cancelled         | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Tick early                                    | !not-found | -            | -               | -                 | -                | -                | -                | -                | -                | -                | -                | -                | -                 | -                 | -                 | -                 | -                | -              | -
Tick after the lease                          | !not-found | -            | -               | -                 | confirmed        | result_unknown   | -                | -                | result_unknown   | -                | -                | -                | -                 | -                 | -                 | -                 | -                | -              | -
Tick after a day                              | !not-found | -            | expired         | expired           | expired          | result_unknown   | result_unknown   | result_unknown   | result_unknown   | -                | -                | -                | =                 | failed            | -                 | -                 | -                | -              | -
TakeClaim                                     | !not-found | !wrong-state | !wrong-state    | executing         | !already-claimed | !already-claimed | !wrong-state     | !wrong-state     | !already-claimed | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
TakeClaim of another hash                     | !not-found | !wrong-state | !wrong-state    | !stale-revision   | !already-claimed | !already-claimed | !wrong-state     | !wrong-state     | !already-claimed | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
TakeClaim of another version                  | !not-found | !wrong-state | !wrong-state    | !version-conflict | !already-claimed | !already-claimed | !wrong-state     | !wrong-state     | !already-claimed | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Renew                                         | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | =                | =                | !lease-lost      | !lease-lost      | =                | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
Renew by another                              | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
Release                                       | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | confirmed        | !attempt-open    | !lease-lost      | !lease-lost      | result_unknown   | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
Release after the confirmation                | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | expired          | !attempt-open    | !lease-lost      | !lease-lost      | result_unknown   | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
Release for good                              | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | failed           | !attempt-open    | !lease-lost      | !lease-lost      | result_unknown   | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
Release for good, undoing another             | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | result_unknown   | !attempt-open    | !lease-lost      | !lease-lost      | result_unknown   | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
StartAttempt                                  | !not-found | !lease-lost  | !lease-lost     | !lease-lost       | =                | !attempt-open    | !lease-lost      | !lease-lost      | =                | !lease-lost      | !lease-lost      | !lease-lost      | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost       | !lease-lost      | !lease-lost    | !lease-lost
AddReceipt SUCCESS accepted                   | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | accepted         | =                | =                | =                | =                | result_unknown   | result_unknown   | accepted          | accepted          | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt SUCCESS completed                  | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | applied          | applied          | =                | =                | =                | result_unknown   | result_unknown   | applied           | applied           | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt FAILURE                            | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | failed           | failed           | result_unknown   | result_unknown   | result_unknown   | =                | =                | failed            | failed            | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt FAILURE, not sent, undoing another | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | result_unknown   | result_unknown   | result_unknown   | result_unknown   | result_unknown   | =                | =                | =                 | =                 | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt FAILURE, undoing another           | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | result_unknown   | result_unknown   | result_unknown   | result_unknown   | result_unknown   | =                | =                | =                 | =                 | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt FAILURE, other version             | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | conflict         | failed           | result_unknown   | result_unknown   | result_unknown   | =                | =                | failed            | failed            | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt FAILURE, not sent                  | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | failed           | result_unknown   | result_unknown   | result_unknown   | result_unknown   | =                | =                | failed            | failed            | =                 | =                 | !not-found       | !not-found     | !not-found
AddReceipt UNKNOWN                            | !not-found | !not-found   | !not-found      | !not-found        | !not-found       | result_unknown   | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | !not-found       | !not-found     | !not-found
AddObservation failed                         | !not-found | !wrong-state | =               | =                 | =                | =                | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddObservation not there                      | !not-found | !wrong-state | =               | conflict          | conflict         | =                | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddObservation other version                  | !not-found | !wrong-state | =               | conflict          | conflict         | =                | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddObservation holds                          | !not-found | !wrong-state | =               | =                 | =                | =                | =                | applied          | =                | =                | =                | =                | =                 | =                 | applied           | =                 | =                | =              | =
AddObservation does not hold                  | !not-found | !wrong-state | =               | =                 | failed           | =                | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddObservation does not hold, undoing another | !not-found | !wrong-state | =               | =                 | result_unknown   | =                | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddObservation still not                      | !not-found | !wrong-state | =               | =                 | failed           | =                | =                | result_unknown   | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddEvidence SUCCEEDED accepted                | !not-found | !wrong-state | !wrong-state    | result_unknown    | result_unknown   | accepted         | =                | =                | =                | =                | result_unknown   | result_unknown   | accepted          | accepted          | =                 | =                 | result_unknown   | result_unknown | result_unknown
AddEvidence SUCCEEDED completed               | !not-found | !wrong-state | !wrong-state    | result_unknown    | result_unknown   | applied          | applied          | =                | =                | =                | result_unknown   | result_unknown   | applied           | applied           | =                 | =                 | result_unknown   | result_unknown | result_unknown
AddEvidence FAILED                            | !not-found | !wrong-state | !wrong-state    | =                 | =                | =                | failed           | result_unknown   | result_unknown   | result_unknown   | =                | =                | failed            | failed            | =                 | =                 | =                | =              | =
AddEvidence NOT_EXECUTED                      | !not-found | !wrong-state | !wrong-state    | =                 | =                | =                | result_unknown   | result_unknown   | result_unknown   | result_unknown   | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
AddEvidence NOT_EXECUTED, no key              | !not-found | !wrong-state | !wrong-state    | =                 | =                | =                | result_unknown   | result_unknown   | =                | result_unknown   | =                | =                | failed            | failed            | =                 | =                 | =                | =              | =
AddEvidence UNKNOWN                           | !not-found | !wrong-state | !wrong-state    | =                 | =                | =                | =                | =                | =                | =                | =                | =                | =                 | =                 | =                 | =                 | =                | =              | =
StartRetry                                    | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | executing         | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
StartRetry without the key                    | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !expired          | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Settle happened                               | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | applied           | applied           | applied           | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Settle happened, acceptance at most           | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | accepted          | accepted          | accepted          | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Settle partly                                 | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | =                 | !wrong-state     | !wrong-state   | !expired
Settle did not happen                         | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Settle did not happen, fenced                 | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | failed            | failed            | failed            | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Settle anything else                          | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !invalid-argument | !invalid-argument | !invalid-argument | !invalid-argument | !wrong-state     | !wrong-state   | !expired
Settle another version                        | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !stale-revision   | !stale-revision   | !stale-revision   | !stale-revision   | !wrong-state     | !wrong-state   | !expired
Settle another snapshot                       | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !stale-revision   | !stale-revision   | !stale-revision   | !stale-revision   | !wrong-state     | !wrong-state   | !expired
Settle without evidence                       | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !invalid-argument | !invalid-argument | !invalid-argument | !invalid-argument | !wrong-state     | !wrong-state   | !expired
Settle held by another                        | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !already-claimed  | !already-claimed  | !already-claimed  | !already-claimed  | !wrong-state     | !wrong-state   | !expired
Settle where two are needed                   | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Confirm                                       | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | applied           | applied           | applied           | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Confirm acceptance at most                    | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | accepted          | accepted          | accepted          | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Confirm did not happen, fenced                | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | failed            | failed            | failed            | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Confirm and refuse                            | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Confirm by the same person                    | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !forbidden        | !forbidden        | !forbidden        | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Confirm nothing                               | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
TakeCase                                      | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | =                 | !wrong-state     | !wrong-state   | !expired
TakeCase held by another                      | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !already-claimed  | !already-claimed  | !already-claimed  | !already-claimed  | !wrong-state     | !wrong-state   | !expired
TakeCase as it was                            | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !stale-revision   | !stale-revision   | !stale-revision   | !stale-revision   | !wrong-state     | !wrong-state   | !expired
HandOver                                      | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | =                 | !wrong-state     | !wrong-state   | !expired
AskAgain                                      | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | =                 | =                 | =                 | !wrong-state     | !wrong-state   | !expired
AskAgain without a query                      | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Conclude in vain                              | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state      | !wrong-state     | !wrong-state   | !expired
Conclude replaced                             | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | failed            | failed            | failed            | failed            | !wrong-state     | !wrong-state   | !expired
Conclude resumed                              | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | applied           | applied           | applied           | applied           | !wrong-state     | !wrong-state   | !expired
Conclude resumed, acceptance at most          | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | accepted          | accepted          | accepted          | accepted          | !wrong-state     | !wrong-state   | !expired
Conclude undone                               | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | failed            | failed            | failed            | failed            | !wrong-state     | !wrong-state   | !expired
Conclude what is not in part                  | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | !wrong-state      | !wrong-state      | applied           | !wrong-state     | !wrong-state   | !expired
SendAgain                                     | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | =                 | !wrong-state      | !wrong-state      | =                 | !wrong-state     | !wrong-state   | !expired
SendAgain before the fence                    | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state      | !wrong-state      | !wrong-state      | =                 | !wrong-state     | !wrong-state   | !expired
SendAgain held by another                     | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !already-claimed  | !already-claimed  | !already-claimed  | !already-claimed  | !wrong-state     | !wrong-state   | !expired
SendAgain without the key                     | !not-found | !wrong-state | !wrong-state    | !wrong-state      | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !wrong-state     | !expired          | !wrong-state      | !wrong-state      | !expired          | !wrong-state     | !wrong-state   | !expired
`

// tableCell is one field of the table.
type tableCell struct{ command, station, want string }

func readTable(t *testing.T) []tableCell {
	t.Helper()
	var head []string
	var cells []tableCell
	for line := range strings.Lines(strings.TrimPrefix(lifeTable, "\n")) {
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if head == nil {
			head = fields
			continue
		}
		if len(fields) != len(head) {
			t.Fatalf("row %q has %d fields, want %d", fields[0], len(fields), len(head))
		}
		for i := 1; i < len(fields); i++ {
			cells = append(cells, tableCell{fields[0], head[i], fields[i]})
		}
	}
	return cells
}

// play brings a new life to the cell's station, gives the command and says
// what came of it, in the table's words.
func (c tableCell) play(t *testing.T) (got string, from, to State) {
	t.Helper()
	l := newLife(t)
	arrive, ok := stations()[c.station]
	if !ok {
		t.Fatalf("no station %q", c.station)
	}
	command, ok := tableCommands()[c.command]
	if !ok {
		t.Fatalf("no command %q", c.command)
	}
	arrive(l)
	cmd := command(l)
	from = l.a.State
	tr, err := l.try(cmd)
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return "!" + string(r.Code), from, from
	case err != nil:
		return err.Error(), from, from
	case tr.Event.Kind == "":
		return "-", from, from
	case l.a.State == from:
		return "=", from, from
	}
	return string(l.a.State), from, l.a.State
}

func TestLifeTable(t *testing.T) {
	for _, cell := range readTable(t) {
		t.Run(cell.command+"/"+cell.station, func(t *testing.T) {
			if got, _, _ := cell.play(t); got != cell.want {
				t.Errorf("%s at %s: got %s, the table says %s", cell.command, cell.station, got, cell.want)
			}
		})
	}
}

// A state or a command that the table forgets would be tested by nobody.
func TestLifeTableIsWhole(t *testing.T) {
	stationsSeen, commandsSeen, rows := map[State]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range readTable(t) {
		l := newLife(t)
		stations()[c.station](l)
		stationsSeen[l.a.State] = true
		name, _, _ := strings.Cut(c.command, " ")
		commandsSeen[name], rows[c.command] = true, true
	}
	for _, s := range States() {
		if !stationsSeen[s] {
			t.Errorf("no column reaches the state %s", s)
		}
	}
	types := commandTypes(t)
	if len(types) < 15 {
		t.Fatalf("found only the commands %v in the source", types)
	}
	for _, c := range types {
		if !commandsSeen[c] {
			t.Errorf("no row gives the command %s", c)
		}
		delete(commandsSeen, c)
	}
	if len(commandsSeen) > 0 {
		t.Errorf("rows for commands that the source does not have: %v", commandsSeen)
	}
	if got := len(tableCommands()); got != len(rows) {
		t.Errorf("%d commands are made, %d rows use them", got, len(rows))
	}
}
