import { describe, expect, it } from 'vitest';
import { ApiError } from '$lib/api';
import { byField, propertiesOf, valuesOf } from './generated';

describe('the properties of a generated guide', () => {
	it('come back as they were, with those that the form does not know', () => {
		const before = {
			title_pattern: '(?<a>x)',
			program_duration: 120,
			include_live: true,
			name_source: 'stream',
			stream_index: 2,
			of_a_client: { a: 1 },
		};
		expect(propertiesOf(valuesOf(before), before)).toEqual(before);
	});

	it('are read in every form that the gateway accepts', () => {
		const values = valuesOf({ categories: ['Sports', 'Hockey'], program_duration: '90', time_pattern: null });
		expect(values.categories).toBe('Sports, Hockey');
		expect(values.program_duration).toBe(90);
		expect(values.time_pattern).toBe('');
		expect(valuesOf(null).name_source).toBe('channel');
	});

	it('lose those that were emptied', () => {
		const before = { title_template: 'A', include_new: true, stream_index: 3, name_source: 'stream' };
		const values = {
			...valuesOf(before),
			title_template: ' ',
			include_new: false,
			name_source: 'channel' as const,
		};
		expect(propertiesOf(values, before)).toEqual({});
	});
});

describe('a refusal', () => {
	it('is shown at the fields that it names', () => {
		const body = { custom_properties: ['title_pattern: Look-ahead is not supported.', 'timezone: Unknown.'] };
		const error = byField(new ApiError(400, 'no', {}, body));
		expect((error as ApiError).fields).toEqual({
			title_pattern: 'Look-ahead is not supported.',
			timezone: 'Unknown.',
		});
	});

	it('of another kind stays as it is', () => {
		const error = new ApiError(503, 'full');
		expect(byField(error)).toBe(error);
	});
});
