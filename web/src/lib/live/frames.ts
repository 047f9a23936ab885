/** The frames of the WebSocket that pages read; docs/websocket.md describes them. */

/** `data` of a frame. */
export interface Frame {
	type: string;
	[member: string]: unknown;
}

export interface ClientStats {
	client_id: string;
	/** Name of the node that serves the viewer; absent without a cluster. */
	node?: string;
	ip_address: string;
	user_agent: string;
	username: string;
	output_profile: number | null;
	/** Format that the viewer gets; a gateway without others sends none. */
	output_format?: string;
	duration: number;
	bytes_sent: number;
	bitrate_kbps: number | null;
	missed_bytes: number;
	misses: number;
}

/** A live channel. Users below level 10 get the first members only. */
export interface LiveChannel {
	channel_id: string;
	channel_name: string;
	channel_number: string;
	state: string;
	uptime: number;
	client_count: number;
	is_preview?: boolean;
	stream_id?: number | null;
	/** The title that a radio station sent last. */
	title?: string | null;
	stream_name?: string | null;
	/** As in `1280x720`; `null` while it is not known. */
	resolution?: string | null;
	source_fps?: number | null;
	/** By their names in ffmpeg. */
	video_codec?: string | null;
	audio_codec?: string | null;
	avg_bitrate?: string | null;
	avg_bitrate_kbps?: number | null;
	owner?: string;
	started_at?: string;
	started_at_epoch?: number;
	m3u_profile_id?: number | null;
	discovered_max_streams?: number | null;
	total_bytes?: number;
	bitrate_kbps?: number | null;
	buffer_bytes?: number;
	losses?: number;
	failovers?: number;
	/** Segments of HLS that were read from providers, and those that were skipped. */
	segments_read?: number;
	segments_skipped?: number;
	/** Datagrams that the network lost on the way from providers. */
	lost_datagrams?: number;
	waiting?: number;
	/** Names of the nodes that play the channel, and of the one with the source; absent without a cluster. */
	nodes?: string[];
	source_node?: string | null;
	clients?: ClientStats[];
	/** What makes segments of the channel, for viewers with HLS or fMP4. */
	segmenters?: SegmenterStats[];
}

/** What makes segments of a channel, for all viewers with the same container and output profile. */
export interface SegmenterStats {
	container: string;
	output_profile: number | null;
	viewers: number;
	/** Seconds; `null` before the first segment is complete. */
	target_duration: number | null;
	newest_segment: number | null;
	segments: number;
	bytes: number;
	/** Age of the newest media that players can request, in seconds. */
	latency: number | null;
	codecs: string | null;
	/** Elementary streams that the container cannot carry, with reasons. */
	left_out: string[];
}

export interface Totals {
	client_count: number;
	connections_in_use: number;
	bitrate_in_kbps: number | null;
	bitrate_out_kbps: number | null;
}

export interface ChannelStats {
	sequence: number;
	timestamp: string;
	channels: LiveChannel[];
	totals: Totals | null;
}

/** Reads a frame; `null` for anything else. */
export function readFrame(text: unknown): Frame | null {
	if (typeof text !== 'string') return null;
	try {
		const frame: unknown = JSON.parse(text);
		const data = (frame as { data?: unknown } | null)?.data;
		if (typeof data !== 'object' || data === null) return null;
		if (typeof (data as Frame).type !== 'string') return null;
		// Statistics are a text, which other clients expect.
		const { stats } = data as Frame;
		return typeof stats === 'string' ? { ...(data as Frame), stats: JSON.parse(stats) } : (data as Frame);
	} catch {
		return null;
	}
}

/** Reads the statistics; `null` if the frame has none. */
export function readStats(frame: Frame): ChannelStats | null {
	const stats = frame.stats as { channels?: LiveChannel[]; totals?: Totals } | undefined;
	if (!Array.isArray(stats?.channels)) return null;
	return {
		sequence: Number(frame.sequence ?? 0),
		timestamp: String(frame.timestamp ?? ''),
		channels: stats.channels,
		totals: stats.totals ?? null,
	};
}

/** Returns the changed ids of a collection: `null` if they are not known, `undefined` if it did not change. */
export function changedIds(frame: Frame, collections: string[]): Set<number> | null | undefined {
	if (!Array.isArray(frame.collections)) return null;
	let found: Set<number> | undefined;
	for (const it of frame.collections as { collection: string; ids: unknown[] | null }[]) {
		if (!collections.includes(it.collection)) continue;
		if (!it.ids) return null;
		found ??= new Set();
		for (const id of it.ids) found.add(Number(id));
	}
	return found;
}
