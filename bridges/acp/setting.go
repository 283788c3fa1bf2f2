package acp

import (
	"encoding/json"
	"slices"
)

// Requests for modes and options.
const (
	methodSetMode   = "session/set_mode"
	methodSetModel  = "session/set_model"
	methodSetOption = "session/set_config_option"
)

// settings are the modes and options of a session that are not those it began with. Agents lose them with their
// process.
type settings struct {
	list  []setting         // in the order in which they were set last
	value map[string]string // of each option, as JSON, as far as the agent has said it
}

// setting is a mode, a model or an option, as the request that sets it.
type setting struct {
	method string
	key    string // the id of an option
	params json.RawMessage
}

func modeOf(session, id string) setting {
	return setting{methodSetMode, "", encode(map[string]string{"sessionId": session, "modeId": id})}
}

func modelOf(session, id string) setting {
	return setting{methodSetModel, "", encode(map[string]string{"sessionId": session, "modelId": id})}
}

// optionOf returns the request for the present value of an option. A boolean has its type in the request.
func optionOf(session string, option map[string]json.RawMessage) setting {
	id := text(option["id"])
	params := map[string]json.RawMessage{"sessionId": encode(session), "configId": encode(id),
		"value": option["currentValue"]}
	if text(option["type"]) == "boolean" {
		params["type"] = option["type"]
	}
	return setting{methodSetOption, id, encode(params)}
}

// optionsOf returns the options that have an id and a value.
func optionsOf(raw json.RawMessage) []map[string]json.RawMessage {
	var all []map[string]json.RawMessage
	for _, raw := range list(raw) {
		o := members(raw)
		if value := o["currentValue"]; text(o["id"]) != "" && len(value) > 0 && string(value) != "null" {
			all = append(all, o)
		}
	}
	return all
}

// set remembers a setting. The last one of a name counts.
func (x *settings) set(n setting) {
	x.list = append(slices.DeleteFunc(x.list, func(o setting) bool {
		return o.method == n.method && o.key == n.key
	}), n)
	if n.method == methodSetOption {
		x.know(n.key, members(n.params)["value"])
	}
}

func (x *settings) know(option string, value json.RawMessage) {
	if x.value == nil {
		x.value = map[string]string{}
	}
	x.value[option] = string(value)
}

// known takes in what a result of the agent says about the options.
func (x *settings) known(result json.RawMessage) {
	for _, o := range optionsOf(members(result)["configOptions"]) {
		x.know(text(o["id"]), o["currentValue"])
	}
}

// updated remembers what the agent has set itself. It sends all options each time; those with another value count.
func (x *settings) updated(session string, u map[string]json.RawMessage) {
	if id := firstOf(text(u["currentModeId"]), text(u["modeId"])); id != "" {
		x.set(modeOf(session, id))
	}
	for _, o := range optionsOf(u["configOptions"]) {
		if was, ok := x.value[text(o["id"])]; !ok || was != string(o["currentValue"]) {
			x.set(optionOf(session, o))
		}
	}
}

// opened takes in the reply of the agent to an editor that opens the session again. The editor sees the values of the
// reply, so they replace those that were set before.
func (x *settings) opened(session string, result json.RawMessage) {
	r := members(result)
	for i, was := range x.list {
		switch was.method {
		case methodSetMode:
			if id := text(members(r["modes"])["currentModeId"]); id != "" {
				x.list[i] = modeOf(session, id)
			}
		case methodSetModel:
			if id := text(members(r["models"])["currentModelId"]); id != "" {
				x.list[i] = modelOf(session, id)
			}
		}
		for _, o := range optionsOf(r["configOptions"]) {
			if was.method == methodSetOption && text(o["id"]) == was.key {
				x.list[i] = optionOf(session, o)
			}
		}
	}
	x.known(result)
}
