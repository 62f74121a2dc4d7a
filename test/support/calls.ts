import { newCall, type ServiceContext, type SignedCall } from '../../src/service/context.js'
import { once, type Proof, type RepeatRule, replayRecordOf } from '../../src/service/replay.js'
import { createRunner } from '../../src/service/write.js'

/** The call of a request whose repeats are accepted. */
export function unguardedCall(context: ServiceContext): SignedCall {
  return { ...newCall(context), replay: undefined, commit: (write) => context.run(write) }
}

/** The call of a signed request that counts once. */
export async function guardedCall(
  context: ServiceContext,
  proof: Proof,
  rule: RepeatRule = 'refuse-every-repeat',
): Promise<SignedCall> {
  const call = newCall(context)
  const replay = await replayRecordOf(context, proof, rule, call.commandId)
  return { ...call, replay, commit: (write) => context.run(once(write, replay)) }
}

/** The context of services without HTTP, with its runner. */
export function contextWithRunner(
  context: Omit<ServiceContext, 'run'>,
  { sharesCommits = true }: { readonly sharesCommits?: boolean } = {},
): ServiceContext {
  return { ...context, run: createRunner(context, !sharesCommits) }
}
