import type { TestProject } from 'vitest/node'
import { type ClusterControl, startCluster } from './cluster.js'

/** The database that the faults happen to. */
export interface FaultDatabase {
  readonly url: string
  /** Present when the server is ours. */
  readonly control?: ClusterControl
}

declare module 'vitest' {
  export interface ProvidedContext {
    readonly database: FaultDatabase
  }
}

/**
 * Starts a PostgreSQL of its own where its programs are found, so that it can be restarted without anybody
 * noticing; else, or with `FAULT_OWN_CLUSTER=0`, takes the one that `TEST_DATABASE_URL` names.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const own = process.env['FAULT_OWN_CLUSTER'] === '0' ? undefined : await startCluster()
  if (own !== undefined) {
    project.provide('database', { url: own.url, control: own.control })
    return own.stop
  }
  const url = process.env['TEST_DATABASE_URL']
  if (url === undefined) {
    throw new Error('faults need PostgreSQL: install its server, or set TEST_DATABASE_URL')
  }
  project.provide('database', { url })
  return async () => {}
}
