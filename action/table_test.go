package action

import (
	"errors"
	"strings"
	"testing"
	"time"
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
AddEvidence NOT_EXECUTED, no key              | !not-found | !wrong-state | !wrong-state    | =                 | =                | =                | result_unknown   | result_unknown   | result_unknown   | result_unknown   | =                | =                | failed            | failed            | =                 | =                 | =                | =              | =
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

// stations bring a new life to a column of the table.
func stations() map[string]func(*life) {
	return map[string]func(*life){
		"none":      func(*life) {},
		"draft":     func(l *life) { l.do(l.draft(), Draft) },
		"proposed":  func(l *life) { l.proposed() },
		"confirmed": func(l *life) { l.confirmed() },
		"claimed":   func(l *life) { l.claimed() },
		"sent":      func(l *life) { l.sent() },
		"accepted":  func(l *life) { l.sent().do(l.receipt("t1", Success, ProvesAccepted), Accepted) },
		"verifying": func(l *life) {
			l.terms.Verify = true
			l.sent().do(l.receipt("t1", Success, ProvesCompleted), Accepted)
		},
		"applied":  func(l *life) { l.sent().do(l.receipt("t1", Success, ProvesCompleted), Applied) },
		"failed":   func(l *life) { l.sent().do(l.failure("t1", "", false), Failed) },
		"conflict": func(l *life) { l.sent().do(l.failure("t1", "", true), Conflict) },
		"unknown": func(l *life) {
			l.unknown().do(l.evidence(FoundNotExecuted, ProvesNothing), ResultUnknown)
		},
		"settling": func(l *life) {
			l.unknown().do(l.evidence(FoundNotExecuted, ProvesNothing), ResultUnknown)
			l.do(l.settle(DidNotHappen), ResultUnknown)
		},
		"mismatch": func(l *life) {
			l.terms.Verify, l.terms.VerifyTries = true, 1
			l.sent().do(l.receipt("t1", Success, ProvesCompleted), Accepted)
			l.do(l.reading("7", HoldsFalse), ResultUnknown)
		},
		"between": func(l *life) { l.between("t1") },
		"in part": func(l *life) {
			l.between("t0").do(l.attempt("c1", "t1"), Executing)
			l.do(l.failure("t1", "", false), ResultUnknown)
		},
		"rejected":  func(l *life) { l.proposed().do(l.vote(mia, false), Rejected) },
		"cancelled": func(l *life) { l.confirmed().do(Cancel{Op: "c", By: proposer}, Cancelled) },
		"expired":   func(l *life) { l.proposed().wait(time.Hour).do(Tick{}, Expired) },
	}
}

// tableCommands make the row's command for whatever the life has come to.
func tableCommands() map[string]func(*life) Command {
	nobody := []Need{}
	settle := func(verdict string) func(*life) Command {
		return func(l *life) Command { return l.settle(verdict) }
	}
	receipt := func(o Outcome, p Proof) func(*life) Command {
		return func(l *life) Command { return l.receipt("t1", o, p) }
	}
	failure := func(code string, conflict bool) func(*life) Command {
		return func(l *life) Command { return l.failure("t1", code, conflict) }
	}
	evidence := func(o string, p Proof) func(*life) Command {
		return func(l *life) Command { return l.evidence(o, p) }
	}
	return map[string]func(*life) Command{
		"Propose":       func(l *life) Command { c := l.propose(); c.Op = "propose:2"; return c },
		"Propose draft": func(l *life) Command { c := l.draft(); c.Op = "propose:2"; return c },
		"Propose nobody asked": func(l *life) Command {
			c := l.propose()
			c.Op, c.Needs = "propose:2", nobody
			return c
		},
		"Submit":                    func(l *life) Command { return l.submit() },
		"Submit nobody asked":       func(l *life) Command { c := l.submit(); c.Needs = nobody; return c },
		"Revise":                    func(l *life) Command { return l.revise() },
		"Vote approve":              func(l *life) Command { return l.vote(ben, true) },
		"Vote approve, more needed": func(l *life) Command { l.a.Needs = []Need{{Role: "support", Approvals: 2}}; return l.vote(ben, true) },
		"Count": func(l *life) Command {
			if l.a.State == Proposed { // one of two approvals, and nobody else is asked for any more
				l.a.Needs = []Need{{Role: "support", Approvals: 2}}
				l.do(l.vote(mia, true), Proposed)
				l.a.Needs = []Need{{Role: "support", Approvals: 1}}
			}
			return Count{Ref: "cnf_count"}
		},
		"Vote reject":          func(l *life) Command { return l.vote(ben, false) },
		"Vote on another hash": func(l *life) Command { c := l.vote(ben, true); c.ProposalHash = "sha256:00"; return c },
		"Cancel":               func(l *life) Command { return Cancel{Op: l.op(), By: proposer} },
		"Tick early":           func(l *life) Command { l.wait(time.Second); return Tick{CaseID: "cas_t"} },
		"Tick after the lease": func(l *life) Command { l.wait(time.Minute); return Tick{CaseID: "cas_t"} },
		"Tick after a day":     func(l *life) Command { l.wait(24 * time.Hour); return Tick{CaseID: "cas_t"} },
		"TakeClaim":            func(l *life) Command { return l.claim(rival, "c9") },
		"TakeClaim of another hash": func(l *life) Command {
			c := l.claim(rival, "c9")
			c.ProposalHash = "sha256:00"
			return c
		},
		"TakeClaim of another version": func(l *life) Command {
			c := l.claim(rival, "c9")
			c.ObjectVersion = ptr("8")
			return c
		},
		"Renew":            func(l *life) Command { return Renew{Op: l.op(), By: executor, ClaimID: "c1"} },
		"Renew by another": func(l *life) Command { return Renew{Op: l.op(), By: rival, ClaimID: "c1"} },
		"Release":          func(l *life) Command { return Release{Op: l.op(), By: executor, ClaimID: "c1", CaseID: "cas_r"} },
		"Release after the confirmation": func(l *life) Command {
			if l.a.State == Executing {
				for range 6 {
					l.wait(50*time.Second).do(Renew{Op: l.op(), By: executor, ClaimID: "c1"}, Executing)
				}
			}
			return Release{Op: l.op(), By: executor, ClaimID: "c1", CaseID: "cas_r"}
		},
		"Release for good": func(l *life) Command {
			return Release{Op: l.op(), By: executor, ClaimID: "c1", Code: "FORBIDDEN", CaseID: "cas_r"}
		},
		"StartAttempt":                      func(l *life) Command { return l.attempt("c1", "t9") },
		"AddReceipt SUCCESS accepted":       receipt(Success, ProvesAccepted),
		"AddReceipt SUCCESS completed":      receipt(Success, ProvesCompleted),
		"AddReceipt FAILURE":                failure("", false),
		"AddReceipt FAILURE, other version": failure("", true),
		"AddReceipt FAILURE, not sent":      failure(NotSent, false),
		"AddReceipt UNKNOWN":                receipt(Unknown, ProvesNothing),
		"AddObservation failed": func(l *life) Command {
			c := l.reading("", HoldsUnknown)
			c.Observation.Failed, c.Observation.Error, c.Observation.Snapshot = true, "timeout", nil
			return c
		},
		"AddObservation not there": func(l *life) Command {
			c := l.reading("", HoldsUnknown)
			c.Observation.Failed, c.Observation.Absent, c.Observation.Error, c.Observation.Snapshot = true, true, "404", nil
			return c
		},
		"AddObservation other version":    func(l *life) Command { return l.reading("8", HoldsUnknown) },
		"AddObservation holds":            func(l *life) Command { return l.reading("7", HoldsTrue) },
		"AddObservation does not hold":    func(l *life) Command { return l.reading("7", HoldsFalse) },
		"AddObservation still not":        func(l *life) Command { l.wait(20 * time.Second); return l.reading("7", HoldsFalse) },
		"AddEvidence SUCCEEDED accepted":  evidence(FoundSucceeded, ProvesAccepted),
		"AddEvidence SUCCEEDED completed": evidence(FoundSucceeded, ProvesCompleted),
		"AddEvidence FAILED":              evidence(FoundFailed, ProvesNothing),
		"AddEvidence NOT_EXECUTED":        evidence(FoundNotExecuted, ProvesNothing),
		"AddEvidence NOT_EXECUTED, no key": func(l *life) Command {
			l.wait(24 * time.Hour)
			return l.evidence(FoundNotExecuted, ProvesNothing)
		},
		"AddEvidence UNKNOWN":        evidence(FoundUnknown, ProvesNothing),
		"StartRetry":                 func(l *life) Command { return l.retry("c2") },
		"StartRetry without the key": func(l *life) Command { l.wait(22 * time.Hour); return l.retry("c2") },
		"Settle happened":            settle(Happened),
		"Settle happened, acceptance at most": func(l *life) Command {
			l.a.Terms.Proves = ProvesAccepted
			return l.settle(Happened)
		},
		"Settle partly":                 settle(Partly),
		"Settle did not happen":         settle(DidNotHappen),
		"Settle did not happen, fenced": func(l *life) Command { l.wait(3 * time.Minute); return l.settle(DidNotHappen) },
		"Settle anything else":          settle("perhaps"),
		"Settle another version":        func(l *life) Command { c := l.settle(Happened); c.Version--; return c },
		"Settle another snapshot": func(l *life) Command {
			c := l.settle(Happened)
			c.Verdict.SnapshotHash = "sha256:00"
			return c
		},
		"Settle without evidence": func(l *life) Command {
			c := l.settle(Happened)
			c.Verdict.EvidenceRef = " "
			return c
		},
		"Settle held by another":      func(l *life) Command { l.held(otto); return l.settle(Happened) },
		"Settle where two are needed": func(l *life) Command { l.a.Terms.SecondPerson = true; return l.settle(Happened) },
		"Confirm":                     func(l *life) Command { l.waiting(Happened); return l.confirm(otto, true) },
		"Confirm acceptance at most": func(l *life) Command {
			l.a.Terms.Proves = ProvesAccepted
			l.waiting(Happened)
			return l.confirm(otto, true)
		},
		"Confirm did not happen, fenced": func(l *life) Command {
			l.wait(3 * time.Minute).waiting(DidNotHappen)
			return l.confirm(otto, true)
		},
		"Confirm and refuse":         func(l *life) Command { l.waiting(Happened); return l.confirm(otto, false) },
		"Confirm by the same person": func(l *life) Command { l.waiting(Happened); return l.confirm(ops, true) },
		"Confirm nothing":            func(l *life) Command { return l.confirm(otto, true) },
		"TakeCase":                   func(l *life) Command { return l.take(ops) },
		"TakeCase held by another":   func(l *life) Command { l.held(otto); return l.take(ops) },
		"TakeCase as it was":         func(l *life) Command { c := l.take(ops); c.Version--; return c },
		"HandOver":                   func(l *life) Command { return l.handOver(ops, otto) },
		"AskAgain":                   func(l *life) Command { l.query(); return l.askAgain(ops) },
		"AskAgain without a query":   func(l *life) Command { return l.askAgain(ops) },
		"SendAgain":                  func(l *life) Command { return l.missed(3 * time.Minute).sendAgain(ops) },
		"SendAgain before the fence": func(l *life) Command { return l.missed(0).sendAgain(ops) },
		"SendAgain without the key":  func(l *life) Command { return l.missed(22 * time.Hour).sendAgain(ops) },
		"SendAgain held by another":  func(l *life) Command { l.held(otto); return l.missed(3 * time.Minute).sendAgain(ops) },

		"AddReceipt FAILURE, undoing another": func(l *life) Command { l.undoing(); return l.failure("t1", "", false) },
		"AddReceipt FAILURE, not sent, undoing another": func(l *life) Command {
			l.undoing()
			return l.failure("t1", NotSent, false)
		},
		"AddObservation does not hold, undoing another": func(l *life) Command { l.undoing(); return l.reading("7", HoldsFalse) },
		"Release for good, undoing another": func(l *life) Command {
			l.undoing()
			return Release{Op: l.op(), By: executor, ClaimID: "c1", Code: "FORBIDDEN", CaseID: "cas_r"}
		},
		"Conclude resumed": func(l *life) Command { return l.linked(LinkResumes, Applied) },
		"Conclude resumed, acceptance at most": func(l *life) Command {
			l.a.Terms.Proves = ProvesAccepted
			return l.linked(LinkResumes, Applied)
		},
		"Conclude undone":   func(l *life) Command { return l.linked(LinkCompensates, Applied) },
		"Conclude replaced": func(l *life) Command { return l.linked(LinkReplaces, Accepted) },
		"Conclude in vain":  func(l *life) Command { return l.linked(LinkResumes, Failed) },
		"Conclude what is not in part": func(l *life) Command {
			l.wait(3 * time.Minute)
			return Conclude{By: By{Kind: BySystem}, Linked: "act_2", How: LinkResumes, Outcome: Applied}
		},
	}
}

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
