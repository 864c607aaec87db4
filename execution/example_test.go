package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"countersign/execution"
	"countersign/execution/api"
)

// A program proposes an action, and waits until a person has decided and it has
// come to an end. The key names the wish: proposing again after a crash is the
// same action.
func ExampleClient_Propose() {
	ctx := context.Background()
	console, err := execution.NewClient(os.Getenv("CONSOLE"), execution.NewSecret(os.Getenv("PROPOSER_KEY")), execution.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := console.Propose(ctx, api.Propose{
		Tool:    "refunds.refund_order",
		Entry:   "chat",
		Actor:   &api.Actor{ID: "u-anna-schmidt"},
		Payload: json.RawMessage(`{"order_id": "10082", "amount": 4.20, "reason": "one cup arrived chipped"}`),
	}, "chat-8841")
	going := []string{"proposed", "confirmed", "executing", "accepted"} // accepted: done, and not read back yet
	for err == nil && slices.Contains(going, a.State) {
		a, err = console.Await(ctx, a.ID, a.Version, execution.MaxWait)
	}
	if refused, ok := execution.AsProblem(err); ok {
		fmt.Println(refused.Code, refused.Detail) // what to do about it
		return
	}
	said, err := console.Statement(ctx, a.ID, "en")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.State, said.MaySay)
}

// A program executes what is approved, as a contract says. The contract is stored
// once, with a key of an administrator.
func ExampleExecutor() {
	const contract = `
name: warehouse.set_price
title: Change the price of a product
mode: write
input_schema: { type: object, required: [product_id, price], properties: { product_id: { type: string }, price: { type: number } } }
target: { type: product, id: /product_id }
object_version: none
http: { method: PATCH, path: "/products/{product_id}", body: [price] }
execution: { proves: completed, definite_failures: [404] }
`
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	executor, err := execution.New(execution.Config{
		Console: os.Getenv("CONSOLE"),
		Key:     execution.NewSecret(os.Getenv("EXECUTOR_KEY")),
		Systems: []execution.System{{
			Tools:      []string{"warehouse.*"},
			BaseURL:    os.Getenv("WAREHOUSE"),
			WriteToken: execution.NewSecret(os.Getenv("WAREHOUSE_TOKEN")),
		}},
	}, execution.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	admin := executor.Client().As(execution.NewSecret(os.Getenv("ADMIN_KEY")))
	if _, err := admin.PutTool(ctx, "warehouse.set_price", []byte(contract)); err != nil {
		fmt.Println(err)
		return
	}
	if err := executor.Run(ctx); err != nil { // until it is interrupted; what is under way is finished and reported
		fmt.Println(err)
	}
}

// A loop asks for each round, tells what it has cost, and stops by itself when
// its budget is used up. What stands then may be said.
func ExampleTask() {
	ctx := context.Background()
	console, err := execution.NewClient(os.Getenv("CONSOLE"), execution.NewSecret(os.Getenv("PROPOSER_KEY")), execution.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := console.OpenTask(ctx, api.OpenTask{Title: "Answer chat 8844", CostUnit: "EUR",
		Limits: api.TaskLimits{Decisions: new(5), Writes: new(1), Cost: new(0.5)}}, "chat-8844")
	if err != nil {
		fmt.Println(err)
		return
	}
	for round := 1; task.Round(ctx); round++ {
		task.Cost(0.02)
		_, err := task.Propose(ctx, api.Propose{
			Tool:    "refunds.refund_order",
			Entry:   "chat",
			Actor:   &api.Actor{ID: "u-anna-schmidt"},
			Payload: fmt.Appendf(nil, `{"order_id": "10083", "amount": 0.%d5, "reason": "delivered late"}`, round),
		}, fmt.Sprintf("chat-8844-%d", round))
		if err != nil {
			fmt.Println(err)
		}
	}
	if err := task.Err(); err != nil { // it was something else than the budget
		fmt.Println(err)
		return
	}
	stand, err := task.Stand(ctx, "en")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stand.State, stand.Exit.Limit, stand.Exit.MaySay)
}
