import type { WorkflowClient } from '@temporalio/client'
import type { EventHandler } from 'open-payments-server'

// #region temporal
/** Signals the workflow of the record, and starts it with its first event. */
export function toTemporal(workflows: WorkflowClient, taskQueue: string): EventHandler {
  return async (event) => {
    const signal = { signal: 'event', signalArgs: [event] }
    const options = { workflowId: event.subject, taskQueue, args: [], ...signal }
    await workflows.signalWithStart('record', options)
  }
}
// #endregion temporal
