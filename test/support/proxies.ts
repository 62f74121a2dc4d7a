import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where a proxy listens, and the processes behind it, all on this machine. */
export interface Ports {
  readonly own: number
  readonly upstreams: readonly [number, number]
}

export interface ReverseProxy {
  readonly name: string
  /** Writes its files into a folder, and returns the command that runs it in the foreground. */
  readonly prepare: (folder: string, config: string, ports: Ports) => readonly string[]
  /** The language of its configuration in the document. */
  readonly language: string
  /** What its configuration has in the document, and in a test instead: its own port, and no TLS. */
  readonly listening: readonly (readonly [documented: string, (own: number) => string])[]
}

const document = 'docs/reverse-proxies.md'

/** Returns the blocks of code in a language that the document about proxies shows. */
export function configurations(language: string): readonly string[] {
  const found = readFileSync(document, 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)
  return [...found].flatMap(([, each, code = '']) => (each === language ? [code] : []))
}

export const reverseProxies: readonly ReverseProxy[] = [
  {
    name: 'nginx',
    language: 'nginx',
    listening: [['listen 443 ssl;', (own) => `listen 127.0.0.1:${own};`]],
    prepare(folder, config) {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      )
      const http = [...temporary, 'access_log off;', config].join('\n')
      writeFileSync(
        join(folder, 'conf'),
        `daemon off; pid ${folder}/pid; error_log stderr; events {} http {\n${http}}\n`,
      )
      return ['nginx', '-e', 'stderr', '-c', join(folder, 'conf')]
    },
  },
  {
    name: 'HAProxy',
    language: 'haproxy',
    listening: [
      ['bind :443 ssl crt /etc/haproxy/wallet.example.pem', (own) => `bind 127.0.0.1:${own}`],
    ],
    prepare(folder, config) {
      writeFileSync(join(folder, 'conf'), config)
      return ['haproxy', '-db', '-f', join(folder, 'conf')]
    },
  },
  {
    name: 'Apache',
    language: 'apache',
    listening: [
      ['<VirtualHost *:443>', (own) => `Listen 127.0.0.1:${own}\n<VirtualHost 127.0.0.1:${own}>`],
      ['  SSLEngine on\n', () => ''],
    ],
    prepare(folder, config) {
      const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'slotmem_shm']
        .concat('proxy_balancer', 'lbmethod_byrequests')
        .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
      const own = [`PidFile ${folder}/pid`, `DefaultRuntimeDir ${folder}`, `ErrorLog ${folder}/log`]
      writeFileSync(
        join(folder, 'conf'),
        [...modules, ...own, 'ServerName localhost', config].join('\n'),
      )
      return ['apache2', '-DFOREGROUND', '-f', join(folder, 'conf')]
    },
  },
  {
    name: 'Caddy',
    language: 'caddy',
    listening: [['wallet.example {', (own) => `http://localhost:${own} {`]],
    prepare(folder, config) {
      writeFileSync(join(folder, 'conf'), `{\n  admin off\n}\n${config}`)
      return ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'conf')]
    },
  },
  {
    name: 'Varnish',
    language: 'vcl',
    listening: [],
    prepare(folder, config, { own }) {
      writeFileSync(join(folder, 'vcl'), config)
      const files = ['-n', join(folder, 'work'), '-f', join(folder, 'vcl')]
      return ['varnishd', '-F', '-a', `127.0.0.1:${own}`, ...files]
    },
  },
]

/** Replaces texts of a configuration, which must be there. */
export function changed(
  config: string,
  changes: readonly (readonly [from: string, to: string])[],
): string {
  return changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`the configuration has no ${from}`)
    return text.replaceAll(from, to)
  }, config)
}

/**
 * Starts a proxy with a configuration of the document. Only the ports, and what belongs to TLS, are others.
 *
 * @param config default: the first one of its language.
 */
export async function startReverseProxy(
  { language, listening, prepare }: ReverseProxy,
  ports: Ports,
  config = configurations(language)[0] ?? '',
): Promise<{ readonly stop: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-'))
  chmodSync(folder, 0o755) // some run their work as another user
  const changes = [
    ...listening.map(([from, to]) => [from, to(ports.own)] as const),
    ['3000', `${ports.upstreams[0]}`] as const,
    ['3001', `${ports.upstreams[1]}`] as const,
  ]
  const [command = '', ...args] = prepare(folder, changed(config, changes), ports)
  const printed: string[] = []
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => printed.push(chunk.toString()))
  }
  const ended = once(child, 'exit')
  await untilListening(ports.own, child, printed)
  return {
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

async function untilListening(port: number, child: ChildProcess, printed: readonly string[]) {
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`the proxy has ended: ${printed.join('')}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
