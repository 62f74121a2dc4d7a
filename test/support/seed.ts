import fc from 'fast-check'

/*
 * Properties generate the same cases in every run, so that a change fails its tests only for what it changed.
 * `TEST_SEED=random` searches for new cases; fast-check prints the seed of a failure.
 */
const seed = process.env['TEST_SEED'] ?? '1'
if (seed !== 'random') {
  if (!/^-?\d+$/.test(seed)) throw new Error('TEST_SEED must be an integer or "random"')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })
}
