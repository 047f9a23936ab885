import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const login = vi.hoisted(() => ({
	renewals: 0,
	listeners: [] as (() => void)[],
	token: 'a' as string | null,
}));
vi.mock('$lib/auth', () => ({
	session: {
		onToken: (listener: () => void) => login.listeners.push(listener),
		token: async (renew = false) => {
			if (renew) {
				login.renewals += 1;
				login.token = 'b';
				login.listeners.forEach((it) => it());
			}
			return login.token;
		},
	},
}));

/** A socket whose other end is the test. */
class FakeSocket {
	static readonly OPEN = 1;
	static all: FakeSocket[] = [];
	readyState = 1;
	sent: string[] = [];
	onmessage: ((it: { data: string }) => void) | null = null;
	onclose: ((it: { code: number }) => void) | null = null;

	constructor(
		readonly url: URL,
		readonly protocols: string[],
	) {
		FakeSocket.all.push(this);
	}

	send(text: string): void {
		this.sent.push(text);
	}

	close(code = 1000): void {
		if (this.readyState === 3) return;
		this.readyState = 3;
		this.onclose?.({ code });
	}

	establish(version = '1'): void {
		const data = { type: 'connection_established', version };
		this.onmessage?.({ data: JSON.stringify({ type: 'update', data }) });
	}
}

const tokenChanged = (): void => login.listeners.forEach((it) => it());
const last = (): FakeSocket => FakeSocket.all.at(-1)!;
const settled = () => vi.advanceTimersByTimeAsync(0);

describe('the socket', () => {
	let isHidden = false;
	const hide = (hidden: boolean): void => {
		isHidden = hidden;
		document.dispatchEvent(new Event('visibilitychange'));
	};

	async function connected() {
		vi.resetModules();
		const { live } = await import('./live.svelte');
		live.start();
		await settled();
		last().establish();
		expect(live.state).toBe('open');
		return live;
	}

	beforeEach(() => {
		vi.useFakeTimers();
		vi.stubGlobal('WebSocket', FakeSocket);
		isHidden = false;
		Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
		Object.assign(login, { renewals: 0, token: 'a' });
		FakeSocket.all = [];
	});

	afterEach(async () => {
		// The socket of each test ends with the login.
		login.token = null;
		tokenChanged();
		await settled();
		login.listeners = [];
		vi.clearAllTimers();
		vi.useRealTimers();
		vi.unstubAllGlobals();
	});

	it('carries the token as a sub-protocol', async () => {
		await connected();
		expect(last().protocols).toEqual(['bearer', 'a']);
		expect(JSON.parse(last().sent[0]!)).toEqual({ type: 'subscribe', clients: 'none' });
	});

	it('asks for the clients that the parts of a page show, and for no others', async () => {
		const live = await connected();
		const asked = () => last().sent.map((it) => JSON.parse(it).clients);
		const endFirst = live.listClients('uuid-1');
		const endSame = live.listClients('uuid-1');
		const endAll = live.listClients('all');
		endFirst();
		endFirst();
		expect(asked()).toEqual(['none', 'uuid-1', 'all']);
		endAll();
		endSame();
		expect(asked().slice(3)).toEqual(['uuid-1', 'none']);
		const ends = [live.listClients('uuid-1'), live.listClients('uuid-2')];
		expect(asked().at(-1), 'of several channels, all are sent').toBe('all');
		ends.forEach((end) => end());
		expect(asked().at(-1)).toBe('none');
	});

	it('of a hidden tab closes after a minute, and another one opens when the tab is seen', async () => {
		const live = await connected();
		hide(true);
		await vi.advanceTimersByTimeAsync(59_000);
		expect([live.state, FakeSocket.all.length]).toEqual(['open', 1]);
		await vi.advanceTimersByTimeAsync(2000);
		expect([live.state, last().readyState]).toEqual(['closed', 3]);
		// A new token does not make it connect.
		tokenChanged();
		await vi.advanceTimersByTimeAsync(600_000);
		expect(FakeSocket.all).toHaveLength(1);
		hide(false);
		await settled();
		expect(FakeSocket.all).toHaveLength(2);
		last().establish();
		expect(live.state).toBe('open');
	});

	it('of a tab that is hidden for a moment stays', async () => {
		await connected();
		hide(true);
		await vi.advanceTimersByTimeAsync(30_000);
		hide(false);
		await vi.advanceTimersByTimeAsync(35_000);
		expect([FakeSocket.all.length, last().readyState]).toEqual([1, 1]);
	});

	it('that is closed with 1008 renews the login first, and connects with the new token', async () => {
		const live = await connected();
		last().close(1008);
		expect(live.state).toBe('closed');
		await vi.advanceTimersByTimeAsync(2000);
		expect([login.renewals, last().protocols]).toEqual([1, ['bearer', 'b']]);
		last().establish();
		expect(live.state).toBe('open');
	});

	it('that breaks is opened again after a growing pause, with the same login', async () => {
		await connected();
		last().close(1006);
		await vi.advanceTimersByTimeAsync(700);
		expect(FakeSocket.all).toHaveLength(1);
		await vi.advanceTimersByTimeAsync(600);
		expect(FakeSocket.all).toHaveLength(2);
		last().close(1006);
		await vi.advanceTimersByTimeAsync(1500);
		expect(FakeSocket.all).toHaveLength(2);
		await vi.advanceTimersByTimeAsync(1000);
		expect([FakeSocket.all.length, login.renewals]).toEqual([3, 0]);
	});

	it('with a new token opens before the old one closes', async () => {
		await connected();
		const old = last();
		login.token = 'b';
		tokenChanged();
		await settled();
		expect([FakeSocket.all.length, old.readyState]).toEqual([2, 1]);
		last().establish();
		expect([old.readyState, last().readyState]).toEqual([3, 1]);
	});
});
