// Runs Lighthouse on pages of the interface: `node scripts/lighthouse.mjs PROGRAM [FILE]`.
//
// PROGRAM is a build of headwater. Lighthouse is no dependency: `npm install --no-save lighthouse@12.8.2` brings it.
// Chromium must be installed. The results are for people, who record them in benches/baselines, FILE as JSON beside them.
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import lighthouse from 'lighthouse';
import { launch } from 'puppeteer-core';
import { end, folder, LOCAL, ORIGIN, start } from './programs.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell';
const figures = { load_before: loadavg()[0], pages: {} };

/** Runs Lighthouse as on a desktop and as on a phone. */
async function judge(browser, name, url) {
	for (const device of ['desktop', 'mobile']) {
		const page = await browser.newPage();
		// The demo signs in the page by itself.
		await page.goto(url, { waitUntil: 'networkidle2' });
		const isDesktop = device === 'desktop';
		const screen = isDesktop
			? { mobile: false, width: 1350, height: 940, deviceScaleFactor: 1, disabled: false }
			: { mobile: true, width: 412, height: 823, deviceScaleFactor: 1.75, disabled: false };
		const flags = {
			onlyCategories: ['performance', 'accessibility', 'best-practices'],
			disableStorageReset: true,
			formFactor: device,
			screenEmulation: screen,
			...(isDesktop ? { throttling: { rttMs: 40, throughputKbps: 10_240, cpuSlowdownMultiplier: 1 } } : {}),
		};
		const result = (await lighthouse(url, flags, undefined, page)).lhr;
		const scores = Object.fromEntries(
			Object.values(result.categories).map((it) => [it.id, Math.round(100 * (it.score ?? 0))]),
		);
		const failed = Object.values(result.audits)
			.filter((it) => it.score !== null && it.score < 0.9 && it.scoreDisplayMode !== 'informative')
			.map((it) => it.id);
		const paint = Math.round(result.audits['largest-contentful-paint']?.numericValue ?? 0);
		figures.pages[`${name}, ${device}`] = { ...scores, largest_paint_ms: paint, below_90: failed };
		console.log(`${name}, ${device}: ${JSON.stringify(scores)}, largest paint ${paint} ms; ${failed}`);
		await page.close();
	}
}

try {
	const demo = await start(process.argv[2], ['demo', '--source-listen', '127.0.0.1:0', ...LOCAL], ORIGIN);
	const data = ['serve', '--data-dir', join(folder, 'data'), ...LOCAL];
	const fresh = await start(process.argv[2], data, ORIGIN);
	const browser = await launch({
		executablePath: CHROMIUM,
		args: ['--no-sandbox', '--disable-gpu', '--headless=new'],
	});
	await judge(browser, 'Sign-in', `${fresh}/`);
	await judge(browser, 'Now', `${demo}/now`);
	await judge(browser, 'Channels', `${demo}/channels`);
	await judge(browser, 'Guide', `${demo}/guide`);
	await judge(browser, 'Watch', `${demo}/watch`);
	figures.load_after = loadavg()[0];
	await browser.close();
	if (process.argv[3]) writeFileSync(process.argv[3], `${JSON.stringify(figures, null, 1)}\n`);
} finally {
	await end();
}
// Pipes of the browser may still be open.
process.exit();
