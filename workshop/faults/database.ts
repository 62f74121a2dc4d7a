import type { TestProject } from 'vitest/node'
import { type ClusterControl, startCluster } from './cluster.js'

/** The database in which the faults are caused. */
export interface FaultDatabase {
  readonly url: string
  /** Present if the tests started the server. */
  readonly control?: ClusterControl
}

declare module 'vitest' {
  export interface ProvidedContext {
    readonly database: FaultDatabase
  }
}

/**
 * Starts its own PostgreSQL server if the programs are installed, so that restarts do not disturb others.
 * Otherwise, or with `FAULT_OWN_CLUSTER=0`, uses the server that `TEST_DATABASE_URL` names.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const own = process.env['FAULT_OWN_CLUSTER'] === '0' ? undefined : await startCluster()
  if (own !== undefined) {
    project.provide('database', { url: own.url, control: own.control })
    return own.stop
  }
  const url = process.env['TEST_DATABASE_URL']
  if (url === undefined) {
    throw new Error('the fault tests need PostgreSQL: install its server, or set TEST_DATABASE_URL')
  }
  project.provide('database', { url })
  return async () => {}
}
