// The values of the forms of profiles, and what they send.

import type { Schemas } from '$lib/api';

export type StreamProfile = Schemas['StreamProfile'];
export type OutputProfile = Schemas['OutputProfile'];
export type UserAgent = Schemas['UserAgent'];

export interface StreamValues {
	name: string;
	delivery: StreamProfile['delivery'];
	command: string;
	parameters: string;
	user_agent: string;
	is_active: boolean;
	redirect_without_login: boolean;
}

export const NEW_STREAM: StreamValues = {
	name: '',
	delivery: 'command',
	command: 'ffmpeg',
	parameters: '-user_agent {userAgent} -i {streamUrl} -c copy -f mpegts pipe:1',
	user_agent: '',
	is_active: true,
	redirect_without_login: false,
};

export const streamValues = (it: StreamProfile): StreamValues => ({
	name: it.name,
	delivery: it.delivery,
	command: it.command,
	parameters: it.parameters,
	user_agent: String(it.user_agent ?? ''),
	is_active: it.is_active,
	redirect_without_login: it.redirect_without_login,
});

/** Returns the body of a request. Only a program has a command, and only a redirect can be for everybody. */
export function streamBody(
	values: StreamValues,
	changed: Partial<StreamValues>,
): Partial<Schemas['StreamProfileRequest']> {
	const { user_agent, ...body } = changed;
	const wanted: Partial<Schemas['StreamProfileRequest']> = { ...body };
	if (user_agent !== undefined) wanted.user_agent = user_agent.trim() || null;
	if (values.delivery !== 'command') Object.assign(wanted, { command: '', parameters: '' });
	if (values.delivery !== 'redirect') wanted.redirect_without_login = false;
	return wanted;
}

export const KINDS = ['video', 'audio', 'subtitles', 'teletext', 'data'] as const;
export type StreamKind = (typeof KINDS)[number];

export interface OutputValues {
	name: string;
	user_agent_pattern: string;
	position: number | null;
	left_out_kinds: StreamKind[];
	/** Numbers with commas between them. */
	left_out_pids: string;
	/** What converts the stream: nothing, an own program, or that of the stream profile with this id. */
	program: 'none' | 'own' | number;
	command: string;
	parameters: string;
	is_active: boolean;
}

export const NEW_OUTPUT: OutputValues = {
	name: '',
	user_agent_pattern: '',
	position: 0,
	left_out_kinds: [],
	left_out_pids: '',
	program: 'none',
	command: 'ffmpeg',
	parameters: '-i pipe:0 -c:v copy -c:a aac -f mpegts pipe:1',
	is_active: true,
};

export const outputValues = (it: OutputProfile): OutputValues => ({
	name: it.name,
	user_agent_pattern: it.user_agent_pattern,
	position: it.position,
	left_out_kinds: it.left_out_kinds,
	left_out_pids: it.left_out_pids.join(', '),
	program: it.stream_profile ?? (it.command === '' ? 'none' : 'own'),
	command: it.command || NEW_OUTPUT.command,
	parameters: it.parameters || NEW_OUTPUT.parameters,
	is_active: it.is_active,
});

/** Reads numbers with commas or blanks between them; `null` if something else is there. */
export function pidsOf(text: string): number[] | null {
	const parts = text.split(/[\s,]+/).filter(Boolean);
	const numbers = parts.map((it) => (/^(0x[0-9a-f]+|\d+)$/i.test(it) ? Number(it) : NaN));
	return numbers.every((it) => Number.isInteger(it)) ? numbers : null;
}

/** Returns the body of a request for all values. */
export function outputBody(values: OutputValues): Schemas['OutputProfileRequest'] {
	const { program, command, parameters, left_out_pids, position, ...body } = values;
	const isOwn = program === 'own';
	return {
		...body,
		position: position ?? 0,
		left_out_pids: pidsOf(left_out_pids) ?? [],
		stream_profile: typeof program === 'number' ? program : null,
		command: isOwn ? command : '',
		parameters: isOwn ? parameters : '',
	};
}

export interface AgentValues {
	name: string;
	user_agent: string;
	description: string;
	is_active: boolean;
}

export const NEW_AGENT: AgentValues = { name: '', user_agent: '', description: '', is_active: true };

export const agentValues = ({ name, user_agent, description, is_active }: UserAgent): AgentValues => ({
	name,
	user_agent,
	description,
	is_active,
});
