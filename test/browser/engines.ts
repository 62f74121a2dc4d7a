import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from 'open-payments-programs'
import { untimed } from './chromium.js'

const folder = process.env['TEST_BROWSER']

/** The engines that `.ci/browser` or `.ci/engines` has installed. */
export const engines =
  folder === undefined ? [] : (process.env['TEST_ENGINES'] ?? 'chromium').split(' ')

/** A window of a browser, with cookies of its own. */
export interface Window {
  open(url: string): Promise<void>
  url(): Promise<string>
  /** The value of an expression in the page. */
  read(expression: string): Promise<unknown>
  /** Clicks as a person does. Does not wait for what it leads to. */
  click(selector: string): Promise<void>
  /** Types into a field, and presses keys such as Enter. */
  type(selector: string, text: string, key?: 'Enter'): Promise<void>
  /** Goes back to the page before. */
  back(): Promise<void>
  forgetCookies(): Promise<void>
  close(): Promise<void>
}

/** Starts a browser with one window. */
export function openWindow(engine: string): Promise<Window> {
  return engine === 'webkit' ? openWebKit() : openByPuppeteer(engine)
}

/** What this file uses of puppeteer-core, which speaks to Chromium, and to Firefox by WebDriver BiDi. */
interface Puppeteer {
  launch(options: object): Promise<{
    newPage(): Promise<PuppeteerPage>
    close(): Promise<void>
  }>
}
interface PuppeteerPage {
  setDefaultTimeout(ms: number): void
  goto(url: string): Promise<unknown>
  url(): string
  evaluate(expression: string): Promise<unknown>
  click(selector: string): Promise<void>
  type(selector: string, text: string): Promise<void>
  readonly keyboard: { press(key: string): Promise<void> }
  cookies(): Promise<readonly { name: string }[]>
  deleteCookie(...cookies: readonly { name: string }[]): Promise<void>
}

async function openByPuppeteer(engine: string): Promise<Window> {
  const tools = createRequire(resolve(folder ?? '.', 'package.json'))
  const { default: puppeteer } = (await import(tools.resolve('puppeteer-core'))) as {
    default: Puppeteer
  }
  // Chromium has no sandbox for root, as in a container. It opens only the pages of these tests.
  const program =
    engine === 'firefox'
      ? { browser: 'firefox', executablePath: '/usr/bin/firefox-esr' }
      : { executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] }
  const browser = await puppeteer.launch({ ...program, ...untimed })
  const page = await browser.newPage()
  page.setDefaultTimeout(0)
  return {
    open: async (url) => void (await page.goto(url)),
    url: async () => page.url(),
    read: (expression) => page.evaluate(expression),
    click: (selector) => page.click(selector),
    async type(selector, text, key) {
      await page.type(selector, text)
      if (key !== undefined) await page.keyboard.press(key)
    },
    back: async () => void (await page.evaluate('void history.back()')),
    forgetCookies: async () => page.deleteCookie(...(await page.cookies())),
    close: () => browser.close(),
  }
}

const enterKey = '\ue007'
/** The member by which WebDriver refers to an element. */
const elementKey = 'element-6066-11e4-a52e-4f735466cecf'

/** Opens WebKitGTK by WebDriver (W3C), without a package: six commands. */
async function openWebKit(): Promise<Window> {
  const port = await freePort()
  const driver: ChildProcess = spawn('WebKitWebDriver', [`--port=${port}`], { stdio: 'ignore' })
  const send = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const { value } = (await response.json()) as { value: unknown }
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value)}`)
    return value
  }
  const isReady = () =>
    send('GET', '/status').then(
      () => true,
      () => false,
    )
  while (!(await isReady())) {
    if (driver.exitCode !== null) throw new Error(`WebKitWebDriver ended: ${driver.exitCode}`)
    await sleep(20)
  }
  const capabilities = { alwaysMatch: { browserName: 'MiniBrowser' } }
  const created = (await send('POST', '/session', { capabilities })) as { sessionId: string }
  const session = `/session/${created.sessionId}`
  const element = async (selector: string) => {
    const found = await send('POST', `${session}/element`, {
      using: 'css selector',
      value: selector,
    })
    return `${session}/element/${(found as Record<string, string>)[elementKey]}`
  }
  return {
    open: async (url) => void (await send('POST', `${session}/url`, { url })),
    url: async () => String(await send('GET', `${session}/url`)),
    read: (expression) =>
      send('POST', `${session}/execute/sync`, { script: `return ${expression}`, args: [] }),
    click: async (selector) => void (await send('POST', `${await element(selector)}/click`, {})),
    async type(selector, text, key) {
      const typed = key === undefined ? text : text + enterKey
      await send('POST', `${await element(selector)}/value`, { text: typed })
    },
    // A script that begins before the page leaves may never get an answer, so the driver waits for the page.
    back: async () => void (await send('POST', `${session}/back`, {})),
    forgetCookies: async () => void (await send('DELETE', `${session}/cookie`)),
    async close() {
      await send('DELETE', session)
      driver.kill()
    },
  }
}
