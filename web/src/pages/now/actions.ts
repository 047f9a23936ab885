import { api, ApiError, detailOf, ok } from '$lib/api';
import { confirm, toast } from '$lib/ui';
import { text } from './text';

/** Waits for the outcome of an action; what it means when it is not the wanted one is said in words. */
async function outcome(run: Promise<{ message: string }>): Promise<void> {
	try {
		toast((await run).message, { tone: 'good' });
	} catch (error) {
		const known =
			error instanceof ApiError ? { 409: text().busy, 504: text().unknown }[error.status] : undefined;
		// The gateway says why there is nothing to switch to, which is a 409 as well.
		const isRunning =
			error instanceof ApiError && error.status === 409 && /switch/i.test(detailOf(error.body) ?? '');
		if (known && error instanceof ApiError && (error.status === 504 || isRunning)) {
			toast(`${error.message} ${error.status === 504 ? known : ''}`.trim(), { tone: 'bad' });
		} else throw error;
	}
}

export const nextStream = (uuid: string): Promise<void> =>
	outcome(ok(api.POST('/proxy/ts/next_stream/{uuid}', { params: { path: { uuid } } })));

export const switchTo = (uuid: string, stream: number): Promise<void> =>
	outcome(
		ok(
			api.POST('/proxy/ts/change_stream/{uuid}', { params: { path: { uuid } }, body: { stream_id: stream } }),
		),
	);

export async function stopChannel(uuid: string, name: string, viewers: number): Promise<void> {
	const question = {
		title: text().stopChannelAsk(name),
		text: text().stopChannelText(viewers),
		action: text().stopChannel,
		danger: true,
	};
	if (await confirm(question))
		await outcome(ok(api.POST('/proxy/ts/stop/{uuid}', { params: { path: { uuid } } })));
}

export const stopViewer = (uuid: string, client: string): Promise<void> =>
	outcome(
		ok(api.POST('/proxy/ts/stop_client/{uuid}', { params: { path: { uuid } }, body: { client_id: client } })),
	);

/** Disconnects a player that watches a film or an episode. */
export const stopTitleViewer = (client: string): Promise<void> =>
	outcome(ok(api.POST('/proxy/vod/stop_client', { body: { client_id: client } })));

/** Disconnects a player that watches the past of a channel. */
export const stopPastViewer = (client: string): Promise<void> =>
	outcome(ok(api.POST('/proxy/catchup/stop_client', { body: { client_id: client } })));
