// Command program is an example of a program that a customer of a hosted service could have. It calls every operation of that service's
// API. ReelTally has the same operations, so the program works with the address and the token of a ReelTally server.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// call sends a request and decodes the response into result, if result is not nil.
func call(method, path string, body, result any) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		failUnless(err == nil, method, path, err)
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, os.Getenv("REELTALLY_URL")+path, content)
	failUnless(err == nil, method, path, err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("REELTALLY_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	failUnless(err == nil, method, path, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	failUnless(err == nil && response.StatusCode < 300, method, path, response.Status, string(text))
	if result != nil {
		failUnless(json.Unmarshal(text, result) == nil, method, path, string(text))
	}
}

// get sends a request and returns the response, which is a JSON object.
func get(method, path string, body any) (result object) {
	call(method, path, body, &result)
	return result
}

// failUnless ends the program with a message if ok is false.
func failUnless(ok bool, message ...any) {
	if !ok {
		log.Fatalln(message...)
	}
}

func main() {
	const link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
	quoted := url.QueryEscape(link)
	collection := get("POST", "/collections", object{"name": "Launch", "access": "private"})["id"].(string)
	var video struct{ VideoID, DirectURL, Error string }
	call("POST", "/videos", object{"link": link, "collection_ids": []string{collection}, "collection_names": []string{"Spring"}}, &video)
	failUnless(strings.Contains(video.DirectURL, "/video/tiktok/"), video)
	failUnless(strings.Contains(get("POST", "/videos", object{"link": link})["error"].(string), "already"))
	var bulk struct {
		Success, TrackingEnqueued bool
		Summary                   struct{ Succeeded int }
		Results                   []struct{ VideoID string }
		Warnings                  []string
	}
	call("POST", "/videos/bulk", object{"links": []string{"https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/9bZkp7q19f0"}}, &bulk)
	failUnless(bulk.Success && bulk.TrackingEnqueued && bulk.Summary.Succeeded == 2 && len(bulk.Results) == 2 && bulk.Warnings != nil, bulk)
	others := []string{bulk.Results[0].VideoID, bulk.Results[1].VideoID}

	pagination := func(path string) object { return get("GET", path, nil)["pagination"].(object) }
	failUnless(pagination("/videos?order_by=latest_views&order_direction=asc&limit=2&collections=Launch")["total"] == 1.0)
	one := get("GET", "/videos/"+quoted, nil)
	failUnless(one["ad_id"] == video.VideoID && len(one["label_names"].([]any)) == 2, one)
	account := one["linked_account_id"].(string)
	var points, videos []object
	call("GET", "/videos/"+quoted+"/history", nil, &points)
	call("GET", "/accounts/"+account+"/videos", nil, &videos)
	failUnless(len(videos) == 1 && videos[0]["ad_id"] == video.VideoID, videos)

	failUnless(get("GET", "/collections", nil)["count"] == 2.0)
	path := "/collections/" + collection
	call("PATCH", path, object{"name": "Launch 2"}, nil)
	found := get("GET", path+"?include_counts=true", nil)
	failUnless(found["name"] == "Launch 2" && found["video_count"] == 1.0, found)
	failUnless(get("POST", path+"/videos", object{"video_ids": others})["videos_added"] == 2.0)
	failUnless(pagination(path + "/videos?limit=2")["total_pages"] == 2.0)
	failUnless(get("DELETE", path+"/videos", object{"video_ids": others})["videos_removed"] == 2.0)
	failUnless(get("POST", path+"/accounts", object{"account_ids": []string{account}})["accounts_added"] == 1.0)
	failUnless(pagination(path + "/accounts")["total"] == 1.0)
	failUnless(get("DELETE", path+"/accounts", object{"account_ids": []string{account}})["accounts_removed"] == 1.0)

	failUnless(get("DELETE", "/videos", object{"id": link})["message"] != "")
	failUnless(get("DELETE", "/videos/"+others[0], nil)["message"] != "")
	failUnless(get("DELETE", "/videos/bulk", object{"ids": others[1:]})["summary"].(object)["succeeded"] == 1.0)
	failUnless(get("DELETE", path, object{})["deleted_id"] == collection)
	failUnless(get("GET", "/videos/"+video.VideoID, nil)["removed"] == true)
	fmt.Println("done")
}
