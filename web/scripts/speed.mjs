// Measures the speed of the pages against the budgets in a real browser: `node scripts/speed.mjs PROGRAM [FILE]`.
//
// PROGRAM is a release build of headwater. Chromium and chromedriver must be installed. The results are for people, who
// record them in benches/baselines, FILE as JSON beside them; nothing fails because of them.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { end, folder, LOCAL, ORIGIN, pause, start } from './programs.mjs';

const STREAMS = 500_000;
const CHANNELS = 100;
const VIEWERS = 2_000;
/** The network of a household: 10 Mbit/s, 40 ms. */
const NETWORK = { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 };
/** A processor that is this many times slower. */
const SLOWER = 4;
const SCROLL_SECONDS = 6;
const NOW_SECONDS = 20;
const ADMIN = { username: 'admin', password: 'correct horse battery' };

/** All figures, by what they measure. */
const figures = { streams: STREAMS, load_before: loadavg()[0] };

async function send(base, path, body, token) {
	const headers = {
		'Content-Type': 'application/json',
		...(token ? { Authorization: `Bearer ${token}` } : {}),
	};
	const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
	const answer = await fetch(base + path, init);
	const text = await answer.text();
	if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 500)}`);
	return text === '' ? null : JSON.parse(text);
}

/** Serves a playlist, from which the first channels are made. */
function provider() {
	const lines = ['#EXTM3U'];
	for (let n = 0; n < STREAMS; n += 1)
		lines.push(`#EXTINF:-1 group-title="Group ${n % 100}",Stream ${n}`, `http://127.0.0.1:9/${n}.ts`);
	const text = lines.join('\n');
	const server = createServer((_, answer) => answer.end(text)).listen(0, '127.0.0.1');
	return new Promise((done) => server.on('listening', () => done(server)));
}

class Browser {
	static async start() {
		const port = await start('chromedriver', ['--port=0'], /successfully on port (\d+)/);
		const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--window-size=1280,800'];
		const capabilities = { alwaysMatch: { 'goog:chromeOptions': { args } } };
		const { value } = await send(`http://127.0.0.1:${port}`, '/session', { capabilities });
		return new Browser(`http://127.0.0.1:${port}/session/${value.sessionId}`);
	}

	constructor(session) {
		this.session = session;
	}

	/** Closes the browser. A driver that is killed instead leaves its processes behind. */
	async close() {
		await fetch(this.session, { method: 'DELETE' });
	}

	async command(name, body) {
		return (await send(this.session, `/${name}`, body)).value;
	}

	opens(url) {
		return this.command('url', { url });
	}

	script(script) {
		return this.command('execute/sync', { script, args: [] });
	}

	debug(cmd, params = {}) {
		return this.command('goog/cdp/execute', { cmd, params });
	}

	/** Seconds for which the page's main thread was busy since it was opened. */
	async busySeconds() {
		const { metrics } = await this.debug('Performance.getMetrics');
		return metrics.find((it) => it.name === 'TaskDuration').value;
	}
}

/** Notes when the first row of a list is readable. */
const FIRST_ROW = `new MutationObserver((_, observer) => {
	if (!document.querySelector('tbody tr td bdi')) return;
	requestAnimationFrame(() => { window.firstRow = performance.now(); });
	observer.disconnect();
}).observe(document, { childList: true, subtree: true });`;

/** A socket that reports playing channels every second, with other figures each time. */
const FAKE_SOCKET = (channels) => `window.WebSocket = class extends EventTarget {
	static OPEN = 1;
	readyState = 1;
	constructor() {
		super();
		const frame = (data) => this.onmessage?.({ data: JSON.stringify({ type: 'update', data }) });
		setTimeout(() => frame({ type: 'connection_established', version: '0' }));
		let sequence = 0;
		const all = ${JSON.stringify(channels)};
		setInterval(() => {
			sequence += 1;
			const channels = all.map((it, n) => ({
				...it, state: 'playing', uptime: sequence, client_count: ${VIEWERS / CHANNELS}, stream_id: n + 1,
				m3u_profile_id: 1, total_bytes: sequence * 1e6 + n, bitrate_kbps: 8000 + ((sequence * 37 + n * 11) % 400),
				buffer_bytes: 1e7, losses: 0, failovers: 0, waiting: 0,
			}));
			const totals = { client_count: ${VIEWERS}, connections_in_use: ${CHANNELS}, bitrate_in_kbps: 8e5, bitrate_out_kbps: 1.6e7 };
			frame({ type: 'channel_stats', sequence, timestamp: new Date().toISOString(), stats: { channels, totals } });
		}, 1000);
	}
	send() {}
	close() {}
};`;

const SCROLL = `const done = arguments[arguments.length - 1];
	const region = document.querySelector('table[aria-label=Streams]').parentElement;
	const deltas = [];
	let last = performance.now();
	const end = last + ${SCROLL_SECONDS * 1000};
	const step = (now) => {
		deltas.push(now - last);
		last = now;
		region.scrollTop += 90;
		if (now < end) requestAnimationFrame(step);
		else done(deltas.slice(2));
	};
	requestAnimationFrame(step);`;

const shareWithin = (deltas, ms) => deltas.filter((it) => it <= ms).length / deltas.length;

async function measure(program) {
	const server = await provider();
	const origin = await start(program, ['serve', '--data-dir', join(folder, 'data'), ...LOCAL], ORIGIN);
	await send(origin, '/api/accounts/initialize-superuser/', ADMIN);
	const { access } = await send(origin, '/api/accounts/token/', ADMIN);
	const list = { name: 'List', server_url: `http://127.0.0.1:${server.address().port}/list.m3u` };
	const begun = performance.now();
	await send(origin, '/api/m3u/accounts/', { ...list, account_type: 'STD', max_streams: 0 }, access);
	const streams = '/api/channels/streams/?page=1&page_size=100';
	while ((await send(origin, streams, undefined, access)).count < STREAMS) await pause(250);
	figures.import_s = Math.round((performance.now() - begun) / 100) / 10;
	console.log(`import of ${STREAMS} streams: ${figures.import_s.toFixed(1)} s`);
	const { results } = await send(origin, streams, undefined, access);
	await send(
		origin,
		'/api/channels/channels/from-stream/bulk/',
		{ stream_ids: results.map((it) => it.id) },
		access,
	);
	const made = await send(origin, '/api/channels/channels/?page=1&page_size=100', undefined, access);
	const channels = made.results.map((it) => ({
		channel_id: it.uuid,
		channel_name: it.name,
		channel_number: String(it.channel_number),
	}));

	const browser = await Browser.start();
	try {
		await measurePages(browser, origin, channels);
	} finally {
		await browser.close();
		server.close();
		server.closeAllConnections();
	}
}

async function measurePages(browser, origin, channels) {
	await browser.opens(origin);
	await browser.script(`return fetch('/api/accounts/auth/browser/', { method: 'POST',
		headers: { 'Content-Type': 'application/json' }, body: '${JSON.stringify(ADMIN)}' }).then((it) => it.status)`);
	await browser.debug('Page.addScriptToEvaluateOnNewDocument', { source: FIRST_ROW });
	await browser.debug('Network.enable');
	for (const cache of ['empty cache', 'warm cache']) {
		const times = [];
		for (let n = 0; n < 5; n += 1) {
			await browser.opens('about:blank');
			if (cache === 'empty cache') await browser.debug('Network.clearBrowserCache');
			await browser.debug('Network.emulateNetworkConditions', NETWORK);
			await browser.debug('Emulation.setCPUThrottlingRate', { rate: SLOWER });
			await browser.opens(`${origin}/streams`);
			let time = null;
			while (time === null) {
				await pause(50);
				time = await browser.script('return window.firstRow ?? null');
			}
			times.push(time);
		}
		times.sort((a, b) => a - b);
		figures[`first row in ms, ${cache}`] = times.map(Math.round);
		console.log(
			`first row of ${STREAMS} streams, ${cache}, slow: median ${times[2].toFixed(0)} ms, of ${times.map((it) => it.toFixed(0))}`,
		);
	}
	const free = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
	for (const rate of [1, SLOWER]) {
		await browser.debug('Network.emulateNetworkConditions', rate === 1 ? free : NETWORK);
		await browser.debug('Emulation.setCPUThrottlingRate', { rate });
		const deltas = await browser.command('execute/async', { script: SCROLL, args: [] });
		const share = (100 * shareWithin(deltas, 17)).toFixed(1);
		const worst = Math.max(...deltas).toFixed(0);
		figures[`frames within 16.7 ms, percent, processor ${rate} times slower`] = Number(share);
		figures[`worst frame in ms, processor ${rate} times slower`] = Number(worst);
		console.log(
			`scrolling, processor ${rate} times slower: ${share} % of ${deltas.length} frames within 16.7 ms, worst ${worst} ms`,
		);
	}
	await browser.debug('Emulation.setCPUThrottlingRate', { rate: 1 });
	await browser.debug('Network.emulateNetworkConditions', free);
	await browser.debug('Page.addScriptToEvaluateOnNewDocument', { source: FAKE_SOCKET(channels) });
	await browser.debug('Performance.enable', { timeDomain: 'timeTicks' });
	await browser.opens(`${origin}/now`);
	await pause(5000);
	const rows = await browser.script("return document.querySelectorAll('tr[data-channel]').length");
	const before = await browser.busySeconds();
	await pause(NOW_SECONDS * 1000);
	const share = (100 * ((await browser.busySeconds()) - before)) / NOW_SECONDS;
	figures['/now, percent of a core'] = Number(share.toFixed(1));
	figures.load_after = loadavg()[0];
	console.log(
		`/now with ${rows} channels and ${VIEWERS} viewers: ${share.toFixed(1)} % of one core in the page`,
	);
}

try {
	await measure(process.argv[2]);
	if (process.argv[3]) writeFileSync(process.argv[3], `${JSON.stringify(figures, null, 1)}\n`);
} finally {
	await end();
}
// Pipes of the browser may still be open.
process.exit();
