package action

// known is everything that is known of an outcome, contents by their hashes.
type known struct {
	Action       string             `json:"action_id"`
	Attempts     []Attempt          `json:"attempts"`
	Receipts     []knownReceipt     `json:"receipts"`
	Asks         []knownAsk         `json:"asks"`
	Observations []knownObservation `json:"observations"`
}

type knownReceipt struct {
	Receipt
	Body string `json:"body,omitempty"`
}

type knownAsk struct {
	Found
	Snapshot string `json:"snapshot,omitempty"`
}

type knownObservation struct {
	Observation
	Snapshot string `json:"snapshot,omitempty"`
}

// SnapshotHash is the hash of everything that is known of the outcome:
// attempts, receipts, answers by key and readings, with their contents. A
// person's verdict is bound to it.
func (a Action) SnapshotHash() string {
	k := known{Action: a.ID, Attempts: a.Attempts}
	for _, r := range a.Receipts {
		k.Receipts = append(k.Receipts, knownReceipt{r, ContentHash(r.Body)})
	}
	for _, q := range a.Asks {
		k.Asks = append(k.Asks, knownAsk{q.Found, ContentHash(q.Snapshot)})
	}
	for _, o := range a.Observations {
		k.Observations = append(k.Observations, knownObservation{o, ContentHash(o.Snapshot)})
	}
	raw, err := encode(k)
	if err != nil {
		return "" // numbers, texts and times: cannot fail; and "" fits no verdict
	}
	return PayloadHash(raw)
}
