import { type AttemptsHistory, type Fate, forEver, healthy } from './history.js'

interface Case {
  readonly name: string
  readonly history: Partial<AttemptsHistory>
  /** Needs a driver with `trustMax`. */
  readonly denies?: boolean
}

const one = (fate: Fate, more: object = {}) => [{ fate, ...more }]
const statuses = [400, 401, 404, 408, 409, 429, 500, 502, 503, 504]

/** The histories in which time decides, or that random ones rarely contain. */
export const attemptsCases: readonly Case[] = [
  { name: 'nothing fails', history: {} },
  { name: 'a request is lost', history: { fates: one('request lost') } },
  {
    name: 'three requests are lost',
    history: { fates: Array(3).fill({ fate: 'request lost' }) },
  },
  { name: 'a reply is lost', history: { fates: one('reply lost') } },
  ...statuses.flatMap((status) =>
    (['answered in between, forwarded', 'answered in between, not forwarded'] as const).map(
      (fate) => ({ name: `${fate}, with ${status}`, history: { fates: one(fate, { status }) } }),
    ),
  ),
  {
    name: 'a request is late, and the host asks in between',
    history: { fates: one('late', { lateMs: 15_000 }), lagsMs: [-60_000, -60_000, -60_000, 0] },
  },
  {
    name: 'a request is late by nearly all of its time, at another side whose clock is behind',
    history: {
      fates: one('late', { lateMs: 62_000 }),
      behindMs: 4_000,
    },
  },
  {
    name: 'a request is late by the whole margin',
    history: {
      fates: one('late', { lateMs: 68_000 }),
      behindMs: 9_000,
      lagsMs: Array(12).fill(-60_000),
    },
  },
  { name: 'a request is late by an hour', history: { fates: one('late', { lateMs: 3_600_000 }) } },
  {
    name: 'a request is late, and the question about it or the order to close it is lost',
    history: {
      fates: [...one('late', { lateMs: 90_000 }), { fate: 'request lost' }],
      lagsMs: Array(12).fill(-60_000),
    },
  },
  { name: 'a request arrives twice', history: { fates: one('twice', { lateMs: 300_000 }) } },
  ...[0, 1, 2, 3, 4].flatMap((write) =>
    [false, true].map((after) => ({
      name: `the sender is killed ${after ? 'after' : 'before'} write ${write}`,
      history: { kills: [{ write, after }] },
    })),
  ),
  {
    name: 'the sender is killed before the request leaves',
    history: { fates: one('sender killed before it left') },
  },
  {
    name: 'the sender is killed before the reply',
    history: { fates: one('sender killed before the reply') },
  },
  {
    name: 'the other side cannot be read for a while',
    history: { fates: one('request lost'), unreadable: 3 },
  },
  {
    name: 'the other side can never be read after a request was lost',
    history: { fates: one('request lost'), unreadable: forEver },
  },
  {
    name: 'the other side can never be read after a reply was lost',
    history: { fates: one('reply lost'), unreadable: forEver },
  },
  {
    name: 'another payer pays while a request is lost',
    history: { fates: one('request lost'), other: { afterCall: 0, amount: 250n } },
  },
  {
    name: 'another payer pays a part twice while requests are lost',
    history: {
      fates: [{ fate: 'request lost' }, { fate: 'request lost' }, { fate: 'reply lost' }],
      other: { afterCall: 0, amount: 1n },
    },
  },
  {
    name: 'the second decision: a request is lost, then a reply, and another payer pays a part',
    history: {
      fates: [{ fate: 'request lost' }, { fate: 'reply lost' }],
      other: { afterCall: 1, amount: 400n },
    },
  },
  {
    name: 'the receiver withholds one reply, and denies',
    history: { denied: 1 },
    denies: true,
  },
  {
    name: 'the receiver withholds all replies, and denies',
    history: { denied: forEver, lagsMs: Array(30).fill(0) },
    denies: true,
  },
].map((each) => each as Case)

/** The host calls on time while what fails is failing. */
const onTime: readonly number[] = Array(12).fill(0)

export function historyOf({ history }: Case): AttemptsHistory {
  return { ...healthy, lagsMs: onTime, ...history }
}
