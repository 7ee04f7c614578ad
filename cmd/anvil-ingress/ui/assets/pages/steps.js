// steps.js -- the steps of a run, and how their times compare.

import { since } from '../clock.js';
import { h } from '../dom.js';
import { badge } from '../parts.js';
import { TERMINAL } from '../words.js';

const LEAST_PERCENT = 1;

function lasted(step) {
	if (step.startedAt === null)
		return 0;
	return (step.finishedAt === null ? Date.now() : Date.parse(step.finishedAt)) -
		Date.parse(step.startedAt);
}

// Length as share of the longest; the times beside it tell the same in words.
function bar(step, longest) {
	const fill = h('span', { class: `bar-fill ${step.status}` });

	fill.style.width = `${Math.max(LEAST_PERCENT, 100 * lasted(step) / longest)}%`;
	return h('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
}

function stepRow(step, current, longest) {
	return h('li', { class: 'step', 'aria-current': current ? 'step' : null },
		h('span', { class: 'number' }, `${step.position}.`),
		h('span', { class: 'step-name' }, step.name),
		badge(step.status),
		h('span', { class: 'step-time' }, step.startedAt === null ? '—'
			: since(step.startedAt, step.finishedAt)),
		longest > 0 && step.startedAt !== null ? bar(step, longest) : h('span'),
		h('span', { class: 'exit' }, step.exitCode !== null && `exit ${step.exitCode}`),
		h('code', { class: 'command' }, step.command));
}

export function stepList(detail, waitsFor) {
	const { steps, currentStep, run } = detail;
	const longest = Math.max(0, ...steps.map(lasted));

	if (steps.length === 0)
		return h('p', { class: 'empty-line' }, waitsFor);
	return h('ol', { class: 'steps' }, steps.map((s) => stepRow(s,
		!TERMINAL.has(run.status) && s.position === currentStep, longest)));
}
