// deliveries.js -- what a forge has sent of late, and what was refused of it.

import { ago } from '../clock.js';
import { h } from '../dom.js';
import { commit } from '../parts.js';
import { bytes, outcomeWord, plural, refusalWord } from '../words.js';

const LOOKS = { accepted: 'passed', queue_full: 'failed' };

function deliveryRow(d) {
	return h('tr', {},
		h('td', {}, h('span', { class: `badge ${LOOKS[d.outcome] ?? 'idle'}` },
			outcomeWord(d.outcome))),
		h('td', {}, d.reason),
		h('td', {}, h('code', {}, d.eventName)),
		h('td', {}, ago(d.receivedAt)),
		h('td', {}, d.branch ?? '—'),
		h('td', {}, commit(d.commitSha)),
		h('td', {}, d.runId === null ? '—' : h('a', { href: `app/runs/${d.runId}` }, 'Run')));
}

function refusalRow(r) {
	return h('li', {}, h('p', {}, ago(r.at), ' · ', refusalWord(r.reason),
		r.bodyBytes !== null && ` · ${bytes(r.bodyBytes)}`,
		r.count > 1 && ` · ${plural(r.count, 'time', 'times')}`),
	r.hint !== null && h('p', { class: 'help' }, r.hint));
}

function nothing(webhook) {
	return h('div', { class: 'empty-line' }, h('p', {}, 'No delivery has arrived yet'),
		h('p', { class: 'help' }, 'Send a test from the webhook page of the forge. If nothing ' +
			'comes: the forge has to reach ', h('code', {}, webhook.deliveryUrl),
		'; a forge in the same network often has to be allowed to call private addresses.'));
}

export function deliveriesList(webhook, refresh) {
	const { recentDeliveries: deliveries, recentRefusals: refusals } = webhook;

	return [h('div', { class: 'buttons' }, refresh),
		deliveries.length === 0 && refusals.length === 0 && nothing(webhook),
		deliveries.length > 0 && h('div', { class: 'table-box' }, h('table', {},
			h('caption', { class: 'unseen' }, 'Newest deliveries'),
			h('thead', {}, h('tr', {}, ['Outcome', 'Reason', 'Event', 'Received', 'Branch',
				'Commit', 'Run'].map((text) => h('th', { scope: 'col' }, text)))),
			h('tbody', {}, deliveries.map(deliveryRow)))),
		refusals.length > 0 && [h('h4', {}, 'Refused attempts'),
			h('ul', { class: 'refusals' }, refusals.map(refusalRow))]];
}
