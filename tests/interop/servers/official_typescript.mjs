// The official TypeScript SDK behind node's own HTTP server, or on standard input and output.
// Arguments: port, or "stdio"; path of the JSON file of documents.
// documents.py says what the files next to that one mean.
import { access, appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import { createMcpHandler, McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [port, file] = process.argv.slice(2);
const SLOW = 'docs://service/slow';
const GUIDES = 'docs://guides/';
const HOLD_LIMIT_MS = 20000;
const MAX_HOLDS = 9;
const reads = new Map();

const texts = async () => JSON.parse(await readFile(file, 'utf8'));

async function setText(uri, text) {
    const all = await texts();
    all[uri] = text;
    const unfinished = `${file}.${process.pid}`;
    await writeFile(unfinished, JSON.stringify(all));
    await rename(unfinished, file);
}

const exists = path => access(path).then(() => true, () => false);

async function standStill() {
    for (let number = 1; number <= MAX_HOLDS; number += 1) {
        const taken = await rename(`${file}.hold-${number}`, `${file}.reached-${number}`).then(() => true, () => false);
        if (!taken) continue;
        const giveUp = Date.now() + HOLD_LIMIT_MS;
        while (!(await exists(`${file}.release-${number}`)) && Date.now() < giveUp) await pause(10);
        return;
    }
}

async function readDocument(uri) {
    reads.set(uri, (reads.get(uri) ?? 0) + 1);
    await appendFile(`${file}.notes`, `read ${uri}\n`);
    const text = (await texts())[uri];
    if (text === undefined) throw new ResourceNotFoundError(uri);
    if (uri === SLOW) await standStill();
    return { contents: [{ uri, mimeType: 'text/markdown', text }] };
}

const say = text => ({ content: [{ type: 'text', text }] });
const address = z.object({ uri: z.string() });
const document = z.object({ uri: z.string(), text: z.string() });

// One server for each request, as this SDK has it over HTTP: the catalog is whatever the file holds at that moment.
async function build() {
    const server = new McpServer(
        { name: 'interop-official-typescript', version: '1.0' },
        {
            capabilities: { resources: { subscribe: true, listChanged: true } },
            instructions: 'Documents that change while you look at them.'
        }
    );
    const offer = uri => {
        const name = uri.slice(uri.lastIndexOf('/') + 1);
        const title = name.charAt(0).toUpperCase() + name.slice(1);
        server.registerResource(name, uri, { title, mimeType: 'text/markdown' }, () => readDocument(uri));
    };
    Object.keys(await texts())
        .filter(uri => !uri.startsWith(GUIDES))
        .forEach(offer);
    server.registerResource(
        'guide',
        new ResourceTemplate(`${GUIDES}{name}`, { list: undefined }),
        { title: 'Guides', mimeType: 'text/markdown' },
        (_, { name }) => readDocument(GUIDES + name)
    );
    server.registerTool('set_text', { inputSchema: document }, async ({ uri, text }) => {
        await setText(uri, text);
        await announce.updated(server, uri);
        return say('changed');
    });
    server.registerTool('touch', { inputSchema: address }, async ({ uri }) => {
        await announce.updated(server, uri);
        return say('announced');
    });
    server.registerTool('add_document', { inputSchema: document }, async ({ uri, text }) => {
        await setText(uri, text);
        await announce.added(uri, offer);
        return say('added');
    });
    server.registerTool('count_reads', { inputSchema: address }, async ({ uri }) => say(String(reads.get(uri) ?? 0)));
    return server;
}

const handler = createMcpHandler(build);
const announce =
    port === 'stdio'
        ? {
              updated: (server, uri) => server.server.sendResourceUpdated({ uri }),
              added: (uri, offer) => offer(uri) // which announces it: here one server lasts
          }
        : {
              updated: (_, uri) => handler.notify.resourceUpdated(uri),
              added: () => handler.notify.resourcesChanged()
          };

// From node's request to the web standard's, which the SDK takes, and back.
async function serve(incoming, outgoing) {
    const gone = new AbortController();
    outgoing.on('close', () => gone.abort());
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const hasBody = incoming.method !== 'GET' && incoming.method !== 'HEAD';
    const answer = await handler.fetch(
        new Request(`http://${incoming.headers.host}${incoming.url}`, {
            method: incoming.method,
            headers: incoming.headers,
            body: hasBody ? Buffer.concat(chunks) : undefined,
            signal: gone.signal
        })
    );
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
    outgoing.flushHeaders();
    if (answer.body) for await (const chunk of answer.body) outgoing.write(chunk);
    outgoing.end();
}

if (port === 'stdio') {
    serveStdio(build);
} else {
    // Whoever started this process holds the other end of its standard input: no end, no parent.
    process.stdin.on('end', () => process.exit(3)).resume();

    http.createServer((incoming, outgoing) => {
        serve(incoming, outgoing).catch(error => {
            if (!outgoing.destroyed) {
                console.error(error);
                outgoing.destroy();
            }
        });
    }).listen(Number(port), '127.0.0.1');
}
