// socket.mjs -- a viewer's WebSocket by Node's ws, with all that it has got.
import WebSocket from 'ws';

import { socketUrl, ticketFor, until } from './anvil.mjs';

export class Socket {
	messages = [];
	pings = 0;		// ping frames of the server
	pongs = [];		// what its pong frames carried
	answers = 0;		// texts `pong`
	closed = null;		// {code, reason}

	// Resolves when it is open; rejects with the status when the upgrade is refused.
	static async open(run, { from, ticket, ...options } = {}) {
		const url = socketUrl(run, ticket ?? await ticketFor(run), from);
		const socket = new Socket();

		socket.ws = new WebSocket(url, options);
		socket.#listen();
		await new Promise((resolve, reject) => {
			socket.ws.once('open', resolve);
			socket.ws.once('unexpected-response', (request, answer) => {
				request.destroy();
				reject(Object.assign(new Error(`status ${answer.statusCode}`),
					{ status: answer.statusCode }));
			});
			socket.ws.once('error', reject);
		});
		return socket;
	}

	#listen() {
		this.ws.on('message', (data) => {
			if (data.toString() === 'pong')
				this.answers++;
			else
				this.messages.push(JSON.parse(data));
		});
		this.ws.on('ping', () => this.pings++);
		this.ws.on('pong', (data) => this.pongs.push(data.toString()));
		this.ws.on('error', (error) => { this.error = error; });
		this.ws.on('close', (code, reason) => {
			this.closed = { code, reason: reason.toString() };
		});
	}

	// Everything that was sent before has been read by the server when this is over.
	async settle() {
		const mark = `mark ${this.pongs.length}`;

		this.ws.ping(mark);
		await until('a pong', () => this.pongs.includes(mark) || this.closed);
	}

	has(text) {
		return until(`a line ${text}`, () => this.messages.some((m) => m.type === 'log' &&
			m.event.chunk.includes(text)));
	}

	// However long it takes.
	lastClose() {
		return new Promise((resolve) => this.ws.once('close', () => resolve(this.closed)));
	}

	end() {
		return until('the close of a socket', () => this.closed);
	}
}
