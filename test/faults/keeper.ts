import { type ClusterControl, removeCluster } from './cluster.js'

/**
 * Removes a PostgreSQL server once its standard input ends, which it does however the tests end: a server
 * that has detached itself would stay behind when they are killed.
 */
const control = JSON.parse(process.argv[2] ?? '') as ClusterControl
process.stdin.resume()
process.stdin.on('end', () => removeCluster(control))
