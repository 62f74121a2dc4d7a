import type { HttpRequest, HttpResponse } from '../../../src/entry-adapter.js'
import type { Handler, Store } from '../../../src/index.js'
import { usedBytes } from '../heap.js'
import { type Passage, problemOf } from './check.js'
import { createDice, type Dice } from './dice.js'
import { createTexts } from './grammar.js'
import { createBatch, createInput, type Input, type Kind } from './kinds.js'
import { createStage } from './stage.js'
import { createTally, type Report } from './tally.js'

/** How an input reaches the servers. Resolves to the status that its sender sees. */
export type Transport = (
  request: HttpRequest,
  dice: Dice,
) => Promise<{ readonly status: number; readonly problem?: string | undefined }>

export interface RunOptions {
  readonly seed: string
  readonly count: number
  readonly newStore?: (() => Store | Promise<Store>) | undefined
  /** Creates a server for a handler. Default: the handler is called. */
  readonly over?: ((handle: Handler) => Promise<Transport>) | undefined
  /** Plants a fault in the handler of the servers. */
  readonly plant?: ((handle: Handler, store: Store) => Handler) | undefined
  /** Is told how many inputs have been served. */
  readonly onProgress?: ((served: number) => void) | undefined
  /** How long one request may take before it counts as one that gets no response. Default 60 s. */
  readonly hangMs?: number | undefined
}

const batchSize = 500
/** How many batches use the same arbitrary texts. */
const textsOfBatches = 16
/** How many percent of the inputs meet a store that fails. */
const storeFailures = 1

/** Sends inputs one after another, and checks each response and what was stored meanwhile. */
export async function runInputs(options: RunOptions): Promise<Report> {
  const { seed, count, hangMs = 60_000, onProgress } = options
  const stage = await createStage(options.newStore)
  const tally = createTally()
  const planted = options.plant?.(stage.handle, stage.store) ?? stage.handle
  let passage = newPassage(false)
  let found: { response?: HttpResponse; problem?: string | undefined } = {}

  const checked: Handler = async (request) => {
    const response = await planted(request)
    found = { response, problem: problemOf(request, response, passage) }
    return response
  }
  const inProcess: Transport = async (request) => ({ status: (await checked(request)).status })
  const transport = (await options.over?.(checked)) ?? inProcess

  async function send({ kind, request }: Input, batch: string, dice: Dice): Promise<void> {
    passage = newPassage(dice.chance(storeFailures))
    found = {}
    stage.keepIn(passage)
    const start = performance.now()
    const seen = await inTime(() => transport(request, dice), hangMs)
    tally.count({ kind, passage, status: seen.status, ms: performance.now() - start })
    const problem = found.problem ?? seen.problem
    const { response } = found
    if (problem !== undefined) tally.fail({ problem, batch, kind, request, response })
  }

  const batches = Math.ceil(count / batchSize)
  const warm = Math.max(1, Math.floor(batches / 10))
  let texts = createTexts(0)
  let before = 0
  for (let number = 0; number < batches; number++) {
    stage.keepIn()
    if (number > 0) await stage.renew()
    if (number === warm) before = usedBytes()
    const name = `${seed} ${number}`
    const dice = createDice(name)
    if (number % textsOfBatches === 0) texts = createTexts(dice.below(2 ** 31))
    const batch = createBatch(stage, dice, texts)
    const end = Math.min(count, (number + 1) * batchSize)
    for (let at = number * batchSize; at < end; at++) await send(createInput(batch), name, dice)
    onProgress?.(end)
  }
  stage.keepIn()
  await stage.renew()
  const after = usedBytes()
  return tally.report({ before: before || after, after })
}

function newPassage(storeFails: boolean): Passage {
  return { written: [], storeFails, storeFailed: false, errors: [] }
}

/** Resolves to the outcome, or to a problem if there is none in time or it is a rejection. */
async function inTime(send: () => ReturnType<Transport>, ms: number): ReturnType<Transport> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no response within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([send(), late])
  } catch (error) {
    return { status: 0, problem: String(error) }
  } finally {
    clearTimeout(timer)
  }
}

export type { Kind, Report }
