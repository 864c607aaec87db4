package main

import (
	"context"
	"fmt"
	"strings"

	"countersign/execution"
)

func runExecutor(ctx context.Context, c *call) error {
	console := c.text("console", "COUNTERSIGN_URL", "", "`URL` of the console; the configuration's when left out")
	key := c.text("key", "COUNTERSIGN_KEY", "", "API `KEY` with the role executor; better in the environment, where ps does not show it")
	file := c.text("config", "COUNTERSIGN_EXECUTOR_CONFIG", "", "`FILE` that tells the business systems: YAML")
	metrics := c.text("metrics-addr", "COUNTERSIGN_METRICS_ADDR", "", "`ADDRESS` on which GET /metrics answers without a key, such as 127.0.0.1:9464; nowhere when left out")
	c.tracesVariable()
	logger := c.logFlag()
	if _, err := c.parse(); err != nil {
		return err
	}
	log, err := logger()
	if err != nil {
		return err
	}
	if *file == "" {
		return usage("--config is missing: it tells which tools are served, where and with which credentials")
	}
	config, err := execution.LoadConfig(*file)
	if err != nil {
		return err
	}
	if *console != "" {
		config.Console = *console
	}
	if *key != "" {
		config.Key = execution.NewSecret(*key)
	}
	measured := newExecutorMetrics()
	traces, flush, err := startTraces(ctx, c.env, "countersign-executor")
	if err != nil {
		return err
	}
	defer flush() // what could not leave is not worth an error
	executor, err := execution.New(config, execution.Options{Logger: log, OnAttempt: measured.attempted, Traces: traces})
	if err != nil {
		return err
	}
	measured.watch(executor)
	settings := []setting{{"console", config.Console}, {"key", config.Key.String()}}
	for _, s := range config.Systems {
		settings = append(settings, setting{"system " + s.BaseURL,
			fmt.Sprintf("%s; read token %s, write token %s", strings.Join(s.Tools, ", "), s.ReadToken, s.WriteToken)})
	}
	if *metrics != "" {
		at, stop, err := serveMetrics(*metrics, measured.registry, log)
		if err != nil {
			return err
		}
		defer stop() // of nothing that anybody waits for
		settings = append(settings, setting{"metrics-addr", at.String()})
	}
	c.summary(settings)
	return executor.Run(ctx)
}
