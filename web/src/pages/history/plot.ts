/** A plot of lines over time. Loaded on demand, with its library. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { locale } from '$lib/i18n';
import type { LineChart } from './model';

const HEIGHT = 180;
/** Room for the labels of values, in pixels. */
const AXIS_WIDTH = 76;
const DAY_SECONDS = 86_400;

/** Returns the colour of a token. */
const colourOf = (element: Element, token: string): string => {
	// A property keeps `light-dark(…)`; the colour that is used has one value.
	const probe = document.createElement('span');
	probe.style.color = `var(--${token})`;
	element.append(probe);
	const { color } = getComputedStyle(probe);
	probe.remove();
	return color;
};

/** Returns a colour with this opacity, between 0 and 1. */
const faded = (colour: string, opacity: number): string =>
	colour.startsWith('rgb(') ? colour.replace('rgb(', 'rgba(').replace(')', `, ${opacity})`) : colour;

const hour = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' });
const dayAndMonth = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' });

/** Returns the labels of times: hours of a short span, days of a long one. */
function timeLabels(times: number[]): string[] {
	const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
	return times.map((it) => {
		const at = new Date(it * 1000);
		const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
		return span > 2 * DAY_SECONDS || isMidnight ? dayAndMonth.format(at) : hour.format(at);
	});
}

export interface Plot {
	resize: (width: number) => void;
	destroy: () => void;
}

/** Draws a chart into an element. `onhover` gets the step under the pointer, or `null`. */
export function draw(
	element: HTMLElement,
	chart: LineChart,
	times: number[],
	onhover: (step: number | null) => void,
): Plot {
	const [muted, grid] = [colourOf(element, 'text-muted'), colourOf(element, 'line')];
	const font = `12px ${getComputedStyle(element).fontFamily}`;
	const axis = { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
	const series = chart.lines.map((it) => {
		const stroke = colourOf(element, `series-${it.colour}`);
		return {
			stroke,
			width: 1.5,
			points: { show: false },
			spanGaps: false,
			...(it.dashed ? { dash: [6, 4] } : {}),
			...(it.area ? { fill: faded(stroke, 0.16) } : {}),
		};
	});
	const plot = new uPlot(
		{
			width: element.clientWidth,
			height: HEIGHT,
			legend: { show: false },
			cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'history' } },
			scales: { x: { time: true }, y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
			axes: [
				{ ...axis, values: (_, splits) => timeLabels(splits), space: 72, size: 32 },
				{
					...axis,
					size: AXIS_WIDTH,
					space: 36,
					values: (_, splits) => splits.map((it) => chart.format(it)),
					// Counts have no halves.
					...(chart.format(0.5) === '0.5'
						? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000] }
						: {}),
				},
			],
			series: [{}, ...series],
			hooks: { setCursor: [(it) => onhover(it.cursor.idx ?? null)] },
		},
		[times, ...chart.lines.map((it) => it.values)],
		element,
	);
	return {
		resize: (width) => plot.setSize({ width, height: HEIGHT }),
		destroy: () => plot.destroy(),
	};
}
