// projects.js -- all projects of the user.

import { get } from '../api.js';
import { ago } from '../clock.js';
import { working } from '../dialog.js';
import { fill, h } from '../dom.js';
import { icon } from '../icons.js';
import { badge, failure } from '../parts.js';
import { ACTIVE, hostOf } from '../words.js';

const PLACEHOLDERS = 4;

function card(project) {
	return h('li', { class: 'card project' },
		h('div', { class: 'project-top' },
			h('h2', {}, h('a', { href: `app/projects/${project.id}` }, project.name)),
			badge(project.lastRunStatus)),
		h('p', { class: 'slug' }, `${project.ownerSlug}/${project.projectSlug}`),
		h('p', { class: 'quiet-facts' },
			h('span', {}, hostOf(project.repoUrl) ?? 'local repository'),
			h('span', { class: 'branch' }, icon('branch'), project.defaultBranch),
			h('span', {}, 'updated ', ago(project.updatedAt))));
}

function counts(projects) {
	const of = (test) => projects.filter((p) => test(p.lastRunStatus)).length;

	return h('dl', { class: 'counts' }, [['Projects', projects.length],
		['Active', of((s) => ACTIVE.has(s))],
		['Passing', of((s) => s === 'passed')]].map(([label, n]) =>
		h('div', {}, h('dt', {}, label), h('dd', {}, String(n)))));
}

function list(projects) {
	if (projects.length === 0)
		return h('div', { class: 'empty' }, h('h2', {}, 'No projects yet'),
			h('p', {}, 'A project is a repository that anvil builds: on a push, or by hand.'),
			h('a', { class: 'button primary', href: 'app/projects/new' }, 'Create Project'));
	return [counts(projects), h('ul', { class: 'cards' }, projects.map(card))];
}

function placeholders() {
	return h('div', { class: 'cards', role: 'status', 'aria-label': 'Loading projects' },
		Array.from({ length: PLACEHOLDERS }, () => h('div', { class: 'card placeholder' })));
}

export async function projectsPage(context) {
	const body = h('div', {}, placeholders());

	async function load() {
		try {
			const { projects } = await get('api/private/projects', 'projects',
				{ signal: context.signal });

			fill(body, list(projects));
		} catch (error) {
			if (!context.left)
				fill(body, failure(error, load));
		}
	}

	context.show(h('div', { class: 'title-row' }, context.heading('Projects'),
		h('div', { class: 'buttons' }, working('Refresh', load, () => {}),
			h('a', { class: 'button primary', href: 'app/projects/new' }, 'New Project'))),
	body);
	await load();
}
