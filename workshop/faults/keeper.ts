import { type ClusterControl, removeCluster } from './cluster.js'

/**
 * Removes a PostgreSQL server when its standard input ends, which happens however the tests end: the server
 * is detached and would otherwise stay behind when the tests are killed.
 */
const control = JSON.parse(process.argv[2] ?? '') as ClusterControl
process.stdin.resume()
process.stdin.on('end', () => removeCluster(control))
